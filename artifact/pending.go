package artifact

import (
	"aimon.at/vfsd/change"
)

// Bounds of what waits for the Store beside changed entries.
const (
	// maxRenames is how many directory renames are kept; beyond it every open entry is written with
	// its names as they are, which says the same.
	maxRenames = 1000
	// maxTouches is how many changed attributes of final entries are kept. Beyond it an entry may be
	// shown as replaced whose bytes are the same: never the other way round.
	maxTouches = 1 << 16
	// maxNameless is how many files without a name are remembered. One forgotten is recorded under
	// whoever gives it a name.
	maxNameless = 10000
)

// pendingRows is what waits for the Store beside changed entries. Guarded by Recorder.mu.
type pendingRows struct {
	finals    []Entry // final and not written
	renames   []RenameDir
	moves     []dirMove // the same renames, for final entries
	movesLost bool      // some were too many
	deletes   []string  // ids of entries that have rows
	touches   []touched
	last      map[change.FileID]int // index in touches of a file's last
	amends    map[change.FileID]struct{}
}

// touched says that attributes of a file changed and its content did not.
type touched struct {
	file          change.FileID
	before, after change.Stamp
}

func (p *pendingRows) len() int {
	return len(p.finals) + len(p.renames) + len(p.moves) + len(p.deletes) + len(p.touches) + len(p.amends)
}

// changed notes that an entry differs from its row.
func (r *Recorder) changed(e *openEntry) {
	e.gen++
	e.changed = r.now()
	r.dirty[e] = struct{}{}
}

// dropped notes that an entry is no more.
func (r *Recorder) dropped(e *openEntry) {
	e.gen++
	delete(r.dirty, e)
	if e.stored {
		r.pending.deletes = append(r.pending.deletes, e.ID)
	}
}

// renamed notes a directory's rename.
func (r *Recorder) renamed(d RenameDir) {
	r.pending.renames = append(r.pending.renames, d)
	if len(r.pending.renames) > maxRenames {
		r.rewriteAll()
	}
}

// rewriteAll has every open entry written with its names as they are, in place of the renames
// that led there.
func (r *Recorder) rewriteAll() {
	r.pending.renames = nil
	for _, e := range r.open.entries {
		r.dirty[e] = struct{}{}
	}
}

// touch notes changed attributes of a file that may have final entries. Where the time of
// modification moved, a write may have come between the two looks, and nothing tells it from
// utimes(2): that is not followed, and the artifact is shown as replaced.
func (r *Recorder) touch(f change.FileID, before, after change.Stamp) {
	if before == (change.Stamp{}) || before == after || !r.finals.possible(f) {
		return // not known what it was like, or nothing to follow
	}
	if before.Size != after.Size || before.Mtime != after.Mtime {
		return
	}
	p := &r.pending
	if i, known := p.last[f]; known && p.touches[i].after == before {
		p.touches[i].after = after
		return
	}
	if len(p.touches) >= maxTouches {
		r.log.Warn("too many changed attributes wait for the index: some artifacts will be shown as replaced")
		return
	}
	if p.last == nil {
		p.last = map[change.FileID]int{}
	}
	p.last[f] = len(p.touches)
	p.touches = append(p.touches, touched{f, before, after})
}

// amend notes that the own intent of a file changed that may have final entries.
func (r *Recorder) amend(f change.FileID) {
	if !r.finals.possible(f) {
		return
	}
	if r.pending.amends == nil {
		r.pending.amends = map[change.FileID]struct{}{}
	}
	r.pending.amends[f] = struct{}{}
}

// keepNameless remembers a file without a name until it is linked, and forgets the oldest ones.
func (r *Recorder) keepNameless(f *openFile) {
	if len(f.entries) > 1 || f.entries[0].gen > 0 {
		return // known already
	}
	r.nameless = append(r.nameless, f)
	if len(r.nameless) < 2*maxNameless {
		return
	}
	kept := r.nameless[:0]
	for i, f := range r.nameless {
		switch {
		case len(f.names) > 0 || r.open.files[f.id] != f: // linked or gone
		case i < len(r.nameless)-maxNameless:
			r.forget(f)
		default:
			kept = append(kept, f)
		}
	}
	clear(r.nameless[len(kept):])
	r.nameless = kept
}

func (r *Recorder) forget(f *openFile) {
	for len(f.entries) > 0 {
		e := f.entries[0]
		r.dropped(e)
		r.open.remove(e)
	}
}
