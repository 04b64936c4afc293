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
)

const (
	// finishChunk is how many entries become final at once, so that listings and events get their
	// turn between.
	finishChunk = 256
	// maxLooks is how often a file is looked at again because it changed meanwhile.
	maxLooks = 3
)

// finish makes open entries final that match, in order of creation. They are durable when it
// returns without error; after an error those that are left are open as before.
func (r *Recorder) finish(ctx context.Context, match func(*openEntry) bool) error {
	if err := r.finishUnsynced(ctx, match); err != nil {
		return err
	}
	if err := r.cfg.Store.Sync(); err != nil {
		return fmt.Errorf("sync the index: %w", err)
	}
	return nil
}

func (r *Recorder) finishUnsynced(ctx context.Context, match func(*openEntry) bool) error {
	if err := r.Flush(ctx); err != nil {
		return err
	}
	rules := r.rules.pass()
	for chunk := range slices.Chunk(r.matching(match), finishChunk) {
		if err := r.finishSome(ctx, rules, chunk); err != nil {
			return err
		}
	}
	return nil
}

// matching returns the open entries that match. match is called without the lock: it may ask
// Sessions.
func (r *Recorder) matching(match func(*openEntry) bool) []*openEntry {
	r.mu.Lock()
	all := make([]*openEntry, 0, len(r.open.entries))
	for _, e := range r.open.entries {
		all = append(all, e)
	}
	r.mu.Unlock()
	all = slices.DeleteFunc(all, func(e *openEntry) bool { return !match(e) })
	slices.SortFunc(all, func(a, b *openEntry) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// finishSome looks at files and commits what it saw, again where events came between.
func (r *Recorder) finishSome(ctx context.Context, rules *pass, entries []*openEntry) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	for look := 1; len(entries) > 0; look++ {
		// Names are looked up as of now, and every event up to now is in them and, so that
		// DerivedFrom is known, in the index.
		if err := r.flush(ctx); err != nil {
			return err
		}
		looked := r.lookAll(rules, entries)
		for i := range looked {
			if err := r.version.learn(ctx, r.cfg.Store, looked[i].entry); err != nil {
				return err
			}
		}
		var err error
		if entries, err = r.commit(ctx, looked, look >= maxLooks); err != nil {
			return err
		}
	}
	return nil
}

// looked is what an entry becomes final with.
type looked struct {
	open  *openEntry
	gen   uint64 // of open when its names were taken
	entry Entry
	drop  bool // it is no regular file: nothing to record
}

func (r *Recorder) lookAll(rules *pass, entries []*openEntry) []looked {
	all := make([]looked, 0, len(entries))
	r.mu.Lock()
	for _, e := range entries {
		if r.open.entries[e.ID] == e {
			all = append(all, looked{open: e, gen: e.gen, entry: e.snapshot()})
		}
	}
	r.mu.Unlock()
	for i := range all {
		all[i].drop = len(all[i].entry.Names) == 0 || !r.look(&all[i].entry)
		if !all[i].drop {
			r.rule(rules, &all[i].entry)
		}
	}
	return all
}

// look fills in what the file is like now. It reports false where there is no regular file to
// record.
func (r *Recorder) look(e *Entry) bool {
	var why error
	for _, name := range slices.Backward(e.Names) {
		err := r.lookAt(e, name)
		if err == nil {
			return true
		}
		why = cmp.Or(why, err)
	}
	if errors.Is(why, fs.ErrInvalid) {
		return false
	}
	e.MimeType = typeByName(e.Path())
	if !errors.Is(why, fs.ErrNotExist) {
		e.LostReason = reasonOf(why)
		r.log.Warn("cannot look at a written file: it is recorded as lost", keyID, e.ID, keyError, why)
	}
	return true // gone: it is final with what was last seen, and shown as deleted
}

// lookAt looks at the file by one of its names; fs.ErrNotExist where another file has that name.
func (r *Recorder) lookAt(e *Entry, name string) error {
	f, err := r.cfg.Tree.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	writable := f.Writable() // before Stat: what changes after a "no" is a later write
	id, stamp, err := f.Stat()
	if err != nil {
		return err
	}
	if id != e.File {
		return fmt.Errorf("%w: its name is another file's", fs.ErrNotExist)
	}
	e.Stamp, e.OpenAtEnd, e.MimeType = stamp, writable, sniff(f, stamp.Size, name)
	i := slices.Index(e.Names, name)
	e.Names = append(slices.Delete(slices.Clone(e.Names), i, i+1), name)
	return nil
}

// reasonOf gives an error as text that can be stored: its message may carry a hostile name.
func reasonOf(err error) string {
	const most = 200
	s := strings.ToValidUTF8(err.Error(), "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// rule decides whether the entry is an artifact, unless that was done by hand.
func (r *Recorder) rule(rules *pass, e *Entry) {
	if e.Reason == ReasonAdded {
		e.Artifact = true
		return
	}
	standard, known := rules.standards[e.Who.ExecutionID]
	if !known {
		standard = r.standard(e.Who.ExecutionID)
		rules.standards[e.Who.ExecutionID] = standard
	}
	d := rules.decide(e.Path(), e.Who.Artifact, standard)
	e.Artifact, e.Reason = d.Artifact, d.Reason
}

// standard is the execution's default for undeclared files.
func (r *Recorder) standard(executionID string) bool {
	e, ok := r.cfg.Sessions.ExecutionOf(r.sessionID, executionID)
	if !ok {
		r.log.Warn("unknown execution: its undeclared files are no artifacts", keyID, executionID)
	}
	return e.Artifacts
}

// commit makes final what did not change since it was looked at, and returns the rest; all of it
// where insist is set: what changed meanwhile goes on in a new entry then. storing is held.
func (r *Recorder) commit(ctx context.Context, all []looked, insist bool) (again []*openEntry, err error) {
	r.mu.Lock()
	r.drainLocked()
	now := r.now()
	for i := range all {
		l := &all[i]
		switch {
		case r.open.entries[l.entry.ID] != l.open: // unlinked meanwhile
		case l.open.gen != l.gen && !insist:
			again = append(again, l.open)
		default:
			r.close(l, now)
		}
	}
	r.mu.Unlock()
	// From here on they are final, whatever the Store says: it gets them until it has them.
	return again, r.flush(ctx)
}

// close turns an open entry into a final one that waits for the Store, or drops it. storing and
// mu are held.
func (r *Recorder) close(l *looked, now time.Time) {
	changedSince := l.open.gen != l.gen
	last := l.open.snapshot()
	if l.drop {
		r.dropped(l.open)
		r.open.remove(l.open)
		return
	}
	delete(r.dirty, l.open)
	r.open.remove(l.open)
	r.seq++
	e := l.entry
	e.Final, e.Seq, e.FinalAt = true, r.seq, now
	r.version.give(&e)
	r.finals.add(e)
	r.pending.finals = append(r.pending.finals, e)
	if changedSince && last.Stamp != e.Stamp {
		// What was written while its predecessor became final goes on in an entry of its own.
		r.apply(change.Event{Kind: change.Write, File: last.File, Path: last.Path(), Stamp: last.Stamp, Who: last.Who, At: now})
	}
}

// settleHandles waits for releases in flight and has changes behind open handles recorded.
func (r *Recorder) settleHandles(ctx context.Context, toolUseID string) {
	r.mu.Lock()
	h := r.handles
	r.mu.Unlock()
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Settle+time.Second)
	defer cancel()
	h.Settle(ctx, toolUseID, r.cfg.Settle)
}

// settleFor settles the handles behind the open entries that match, so that what was written before is
// in their slice. Where those are of several tool uses or of none, that is all of the mount's.
func (r *Recorder) settleFor(ctx context.Context, match func(*openEntry) bool) {
	r.drain()
	entries := r.matching(match)
	if len(entries) == 0 {
		return
	}
	of := entries[0].key.toolUse
	for _, e := range entries {
		if e.key.toolUse != of {
			of = ""
		}
	}
	r.settleHandles(ctx, of)
}
