package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Bounds of what is done for final entries below a directory that is renamed.
const (
	// maxCarried is how many artifacts the renames of one flush carry along together. What is beyond
	// stays where it was recorded and is shown as deleted: each costs an index read and a look at its
	// file, and to rename a directory to and fro costs whoever does it nothing.
	maxCarried = 10_000
	// maxMoves is how many renames wait. What one beyond would have carried is shown as deleted.
	maxMoves = 1000
)

// dirMove is a directory's rename as it concerns final entries: whoever renamed gets an entry of each
// live artifact below, as with the rename of a file. Which they are is looked up in the Store, after
// the rename and off the path of whoever did it.
type dirMove struct {
	from, to string
	who      session.Attribution
	at       time.Time
	born     uint64 // open entries made until then moved along by themselves
}

// carryLater notes a directory's rename. mu is held.
func (r *Recorder) carryLater(e change.Event, from, to string) {
	p := &r.pending
	if len(p.moves) >= maxMoves {
		if !p.movesLost {
			r.log.Warn("too many renamed directories wait for the index: artifacts below will be shown as deleted")
		}
		p.movesLost = true
		return
	}
	who := e.Who
	who.Late = who.Late || r.endedTools[who.ToolUseID] || r.endedExecutions[who.ExecutionID]
	at := e.At
	if at.IsZero() {
		at = r.now()
	}
	p.moves = append(p.moves, dirMove{from: from, to: to, who: who, at: at, born: r.open.born})
}

// carryAll makes the entries of whoever renamed the directories. It returns how many entries it looked
// into and the moves that are left where it fails. storing is held.
func (r *Recorder) carryAll(ctx context.Context, moves []dirMove) (carried int, left []dirMove, err error) {
	for i := range moves {
		n, err := r.carry(ctx, moves[i:], maxCarried-carried)
		if err != nil {
			return carried, moves[i:], err
		}
		carried += n
	}
	return carried, nil, nil
}

// carry makes the entries for the first of moves, which the others followed: at most that many.
func (r *Recorder) carry(ctx context.Context, moves []dirMove, most int) (int, error) {
	if r.seq == 0 || most == 0 {
		return 0, nil
	}
	m := moves[0]
	found, err := r.cfg.Store.ArtifactsBelow(ctx, r.sessionID, m.from, most+1)
	if err != nil {
		return 0, fmt.Errorf("look up artifacts below a renamed directory: %w", err)
	}
	if len(found) > most {
		r.log.Warn("renamed directories have too many artifacts: some are shown as deleted", "most", maxCarried)
		found = found[:most]
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range found {
		// The device may have another number than when it was recorded.
		if id, _, err := r.cfg.Tree.Stat(followed(found[i].Path(), moves)); err == nil && sameFile(id, found[i].File) {
			found[i].File = id
		}
	}
	r.confirm(r.beginCarried(m, moves, found))
	return len(found), nil
}

// followed is the path after all of moves.
func followed(path string, moves []dirMove) string {
	for _, m := range moves {
		if rest, below := strings.CutPrefix(path, m.from+"/"); below {
			path = m.to + "/" + rest
		}
	}
	return path
}

// beginCarried makes an entry for each file of found that has none, at the names that it should have
// now. From here on events move them; whether that is so is confirmed after. found is in order.
func (r *Recorder) beginCarried(m dirMove, moves []dirMove, found []Entry) (out []claimed) {
	of := map[change.FileID][]Entry{}
	for _, e := range found {
		of[e.File] = append(of[e.File], e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drainLocked()
	for _, last := range found {
		records := of[last.File]
		if records[len(records)-1].ID != last.ID || r.movedAlong(m, last) {
			continue
		}
		o := r.open.add(newOpen(r.sessionID, change.Event{File: last.File, Stamp: last.Stamp, Who: m.who, At: m.at}))
		o.DerivedFrom = last.ID
		for _, e := range records {
			r.claimFree(followed(followed(e.Path(), moves), r.pending.moves), o)
		}
		if len(o.names) == 0 {
			r.open.remove(o)
			continue
		}
		r.changed(o)
		out = append(out, claimed{open: o, content: last.Stamp})
	}
	return out
}

// movedAlong reports whether the file of a final entry needs no new one: an open entry moved with the
// directory, or whoever renamed has written the file since.
func (r *Recorder) movedAlong(m dirMove, e Entry) bool {
	f := r.open.files[e.File]
	if f == nil {
		return false
	}
	if slices.ContainsFunc(f.entries, func(o *openEntry) bool { return o.born <= m.born }) {
		return true
	}
	o := f.find(keyOf(m.who))
	if o == nil {
		return false
	}
	o.DerivedFrom = cmp.Or(o.DerivedFrom, e.ID)
	r.changed(o)
	return true
}

// claimFree makes path the name that o shows, unless an event has given it to another file.
func (r *Recorder) claimFree(path string, o *openEntry) {
	if n := r.open.names.find(path); n == nil || n.file == nil || n.file == o.file {
		r.open.claim(path, o.file, func(other *openEntry) bool { return other == o })
	}
}

// claimed is an open entry whose names come from the record and not from an event.
type claimed struct {
	open    *openEntry
	content change.Stamp // what its file is like if it is the one that was meant; zero for any
	gen     uint64
	names   []string
	wrong   []string // those of names that are not the file's
}

// confirm compares names with files and takes those away that are another file's or nobody's, again
// where events came between. What goes on changing is left to its events. storing is held.
func (r *Recorder) confirm(entries []claimed) {
	for look := 0; len(entries) > 0 && look < maxLooks; look++ {
		r.mu.Lock()
		for i := range entries {
			c := &entries[i]
			c.gen, c.names = c.open.gen, c.open.snapshot().Names
		}
		r.mu.Unlock()
		for i := range entries {
			c := &entries[i]
			c.wrong = slices.DeleteFunc(c.names, func(name string) bool { return r.leadsTo(name, c) })
		}
		entries = r.loseWrong(entries)
	}
}

func (r *Recorder) leadsTo(name string, c *claimed) bool {
	id, stamp, err := r.cfg.Tree.Stat(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			r.log.Warn("cannot look at a moved file", keyID, c.open.ID, keyError, err)
		}
		return false
	}
	same := c.content == (change.Stamp{}) || stamp.Size == c.content.Size && stamp.Mtime == c.content.Mtime
	return same && id == c.open.file.id
}

// loseWrong returns what changed since it was looked at.
func (r *Recorder) loseWrong(entries []claimed) (again []claimed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drainLocked()
	for _, c := range entries {
		switch {
		case r.open.entries[c.open.ID] != c.open: // it went meanwhile
		case c.open.gen != c.gen:
			again = append(again, c)
		default:
			for _, name := range c.wrong {
				if n := r.open.names.find(name); n != nil && n.file == c.open.file {
					r.open.lose(n)
				}
			}
		}
	}
	return again
}
