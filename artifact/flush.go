package artifact

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"aimon.at/vfsd/change"
)

const (
	// maxBatch is how many mutations are applied at once.
	maxBatch = 512
	// retryDelay is how long the writer waits after a Store that failed.
	retryDelay = time.Second
)

// writeLoop writes what changed, some time after it did so that a file that is written, renamed and
// written again is one row, and looks for late entries whose execution has ended.
func (r *Recorder) writeLoop(ctx context.Context) {
	sweep := time.NewTicker(r.cfg.Quiet)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			r.sweep(ctx)
			continue
		case <-r.applied:
		}
		if !wait(ctx, r.cfg.Batch) {
			return
		}
		for r.tryFlush(ctx) != nil {
			if !wait(ctx, retryDelay) {
				return
			}
		}
	}
}

func (r *Recorder) tryFlush(ctx context.Context) error {
	err := r.Flush(ctx)
	if err != nil && ctx.Err() == nil {
		r.log.Error("cannot write to the index: it is tried again", keyError, err, "pending", r.Pending())
	}
	return err
}

// wait reports false where ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// flush writes what changed. storing is held. Where it fails, all of it will be tried again.
func (r *Recorder) flush(ctx context.Context) error {
	carried, err := r.flushOnce(ctx)
	if err == nil && carried > 0 { // renamed directories made entries
		carried, err = r.flushOnce(ctx)
	}
	if err != nil || carried > 0 {
		signal(r.applied) // the writer goes on, whoever this was called for
	}
	return err
}

// flushOnce writes what changed so far, and makes the entries that renamed directories carry: carried
// is not 0 where there may be some to write now.
func (r *Recorder) flushOnce(ctx context.Context) (carried int, err error) {
	rows := r.takeRows()
	if err = r.applyRows(ctx, rows); err == nil {
		err = r.bringForward(ctx, rows.touches)
	}
	if err == nil {
		err = r.amendFinals(ctx, rows.amends)
	}
	if err == nil {
		carried, rows.moves, err = r.carryAll(ctx, rows.moves)
	}
	if err != nil {
		r.putBack(rows)
	}
	return carried, err
}

// rowsTaken is what one flush writes.
type rowsTaken struct {
	pendingRows
	puts  []Entry
	moved []*openEntry // those of puts whose DerivedFrom is to be looked up
}

// takeRows drains the queue and takes what changed.
func (r *Recorder) takeRows() rowsTaken {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drainLocked()
	taken := rowsTaken{pendingRows: r.pending}
	r.pending = pendingRows{}
	changed := make([]*openEntry, 0, len(r.dirty))
	for e := range r.dirty {
		if len(e.names) > 0 { // else it has no row until it is linked
			changed = append(changed, e)
		}
	}
	r.dirty = map[*openEntry]struct{}{}
	slices.SortFunc(changed, func(a, b *openEntry) int { return cmp.Compare(a.ID, b.ID) })
	taken.puts = make([]Entry, len(changed))
	for i, e := range changed {
		e.stored = true // as far as anybody can tell from here on
		if e.moved && r.finals.possible(e.File) {
			taken.moved = append(taken.moved, e)
		}
		e.moved = false
		taken.puts[i] = e.snapshot()
	}
	return taken
}

// putBack has everything tried again that a flush failed to write. How much of it was written is
// not known, so the renames are replaced by the names that they led to.
func (r *Recorder) putBack(rows rowsTaken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range rows.moved {
		e.moved = e.DerivedFrom == ""
	}
	r.rewriteAll()
	later := r.pending
	r.pending = pendingRows{
		finals:  append(rows.finals, later.finals...),
		moves:   append(rows.moves, later.moves...),
		deletes: append(rows.deletes, later.deletes...),
	}
	for _, t := range append(rows.touches, later.touches...) {
		r.touch(t.file, t.before, t.after)
	}
	for _, amends := range []map[change.FileID]struct{}{rows.amends, later.amends} {
		for f := range amends {
			r.amend(f)
		}
	}
}

// applyRows writes rows. Final ones come first: a file that was moved after is derived from them.
// Then renames, which move the rows that were not changed otherwise; those that were are written
// over.
func (r *Recorder) applyRows(ctx context.Context, rows rowsTaken) error {
	if err := r.applyBatch(ctx, puts(rows.finals)); err != nil {
		return err
	}
	if err := r.derive(ctx, rows); err != nil {
		return err
	}
	batch := make([]Mutation, 0, len(rows.renames)+len(rows.puts)+len(rows.deletes))
	for i := range rows.renames {
		batch = append(batch, Mutation{RenameDir: &rows.renames[i]})
	}
	batch = append(batch, puts(rows.puts)...)
	for _, id := range rows.deletes {
		batch = append(batch, Mutation{Delete: &EntryKey{SessionID: r.sessionID, ID: id}})
	}
	return r.applyBatch(ctx, batch)
}

func puts(entries []Entry) []Mutation {
	batch := make([]Mutation, len(entries))
	for i := range entries {
		batch[i].Put = &entries[i]
	}
	return batch
}

func (r *Recorder) applyBatch(ctx context.Context, batch []Mutation) error {
	for chunk := range slices.Chunk(batch, maxBatch) {
		if err := r.cfg.Store.Apply(ctx, chunk); err != nil {
			return fmt.Errorf("write %d rows: %w", len(chunk), err)
		}
	}
	return nil
}

// derive looks up which final entry a moved file had.
func (r *Recorder) derive(ctx context.Context, rows rowsTaken) error {
	from := map[string]string{}
	for _, e := range rows.moved {
		earlier, err := r.cfg.Store.EntriesOf(ctx, r.sessionID, e.File)
		if err != nil {
			return fmt.Errorf("look up earlier entries: %w", err)
		}
		if len(earlier) > 0 {
			from[e.ID] = earlier[len(earlier)-1].ID
		}
	}
	for i, e := range rows.puts {
		rows.puts[i].DerivedFrom = cmp.Or(from[e.ID], e.DerivedFrom)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range rows.moved {
		e.DerivedFrom = cmp.Or(from[e.ID], e.DerivedFrom)
	}
	return nil
}

// bringForward moves the recorded times of final entries whose file's attributes changed and whose
// content did not, so that they are still served.
func (r *Recorder) bringForward(ctx context.Context, touches []touched) error {
	for _, t := range touches {
		entries, err := r.cfg.Store.EntriesOf(ctx, r.sessionID, t.file)
		if err != nil {
			return fmt.Errorf("look up touched entries: %w", err)
		}
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Stamp != t.before })
		for i := range entries {
			entries[i].Stamp = t.after
		}
		if err := r.applyBatch(ctx, puts(entries)); err != nil {
			return err
		}
		r.mu.Lock()
		r.finals.touch(t)
		r.mu.Unlock()
	}
	return nil
}

// amendFinals adds or withdraws the latest final entry of files whose own intent changed.
func (r *Recorder) amendFinals(ctx context.Context, files map[change.FileID]struct{}) error {
	for f := range maps.Keys(files) {
		entries, err := r.cfg.Store.EntriesOf(ctx, r.sessionID, f)
		if err != nil {
			return fmt.Errorf("look up amended entries: %w", err)
		}
		if len(entries) == 0 {
			continue
		}
		if err := r.amendFinal(ctx, entries[len(entries)-1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) amendFinal(ctx context.Context, e Entry) error {
	if id, _, err := r.cfg.Tree.Stat(e.Path()); err != nil || id != e.File {
		return nil // the attribute is another file's business
	}
	d := r.rules.Decide(e.Path(), e.Who.Artifact, r.standard(e.Who.ExecutionID))
	if d.Artifact == e.Artifact && d.Reason == e.Reason {
		return nil
	}
	e.Artifact, e.Reason = d.Artifact, d.Reason
	return r.putFinal(ctx, e)
}

// putFinal writes a final entry of which only what is not content changed. storing is held.
func (r *Recorder) putFinal(ctx context.Context, e Entry) error {
	if err := r.version.learn(ctx, r.cfg.Store, e); err != nil {
		return err
	}
	r.version.give(&e)
	return r.applyBatch(ctx, []Mutation{{Put: &e}})
}
