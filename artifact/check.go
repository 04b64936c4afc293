package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"aimon.at/vfsd/change"
)

// Check compares what the live mounts' sessions have recorded with the index and with the files, and
// calls found with one line for each disagreement. Tools may run meanwhile: the disk is a moment ahead
// of what is recorded of it, so a disagreement counts only when it is still there at a second look.
func (l *Library) Check(ctx context.Context, found func(string)) error {
	for _, r := range l.recorders() {
		if err := r.check(ctx, found); err != nil {
			return fmt.Errorf("check session %s: %w", r.sessionID, err)
		}
	}
	return nil
}

func (r *Recorder) check(ctx context.Context, found func(string)) error {
	first, err := r.disagreements(ctx)
	if err != nil || len(first) == 0 {
		return err
	}
	if !wait(ctx, r.cfg.Settle) {
		return ctx.Err()
	}
	second, err := r.disagreements(ctx)
	if err != nil {
		return err
	}
	for _, line := range slices.Sorted(maps.Keys(second)) {
		if first[line] {
			found(fmt.Sprintf("session %s: %s", r.sessionID, line))
		}
	}
	return nil
}

func (r *Recorder) disagreements(ctx context.Context) (map[string]bool, error) {
	lines := map[string]bool{}
	report := func(format string, args ...any) { lines[fmt.Sprintf(format, args...)] = true }
	if err := r.checkOpen(ctx, report); err != nil {
		return nil, err
	}
	return lines, r.checkFinals(ctx, report)
}

// checkOpen holds up whatever writes rows, and nobody who writes files.
func (r *Recorder) checkOpen(ctx context.Context, report func(string, ...any)) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.flush(ctx); err != nil {
		return err
	}
	rows, err := r.cfg.Store.OpenEntries(ctx, r.sessionID)
	if err != nil {
		return err
	}
	r.checkRows(rows, report)
	r.checkFiles(report)
	return nil
}

// checkRows compares the index's open entries with those in memory. What changed since the flush has
// no row, or an old one, by right.
func (r *Recorder) checkRows(rows []Entry, report func(string, ...any)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stored := map[string]bool{}
	for _, e := range rows {
		stored[e.ID] = true
		if r.open.entries[e.ID] == nil && !slices.Contains(r.pending.deletes, e.ID) {
			report("open entry %s is in the index and not in the recorder", e.ID)
		}
	}
	for id, e := range r.open.entries {
		if _, dirty := r.dirty[e]; !dirty && len(e.names) > 0 && !stored[id] {
			report("open entry %s is in the recorder and not in the index", id)
		}
	}
}

// checkFiles compares open entries with the files at the names that they show.
func (r *Recorder) checkFiles(report func(string, ...any)) {
	type shown struct {
		open *openEntry
		gen  uint64
		path string
	}
	r.mu.Lock()
	var all []shown
	for _, e := range r.open.entries {
		if len(e.names) > 0 {
			all = append(all, shown{e, e.gen, e.names[len(e.names)-1].path()})
		}
	}
	r.mu.Unlock()
	for _, s := range all {
		id, _, err := r.cfg.Tree.Stat(s.path)
		other := err == nil && !sameFile(id, s.open.file.id)
		if !other && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r.mu.Lock()
		r.drainLocked()
		same := r.open.entries[s.open.ID] == s.open && s.open.gen == s.gen
		r.mu.Unlock()
		path, _ := change.EscapePath(s.path)
		switch {
		case !same: // it was renamed or removed meanwhile
		case other:
			report("open entry %s: another file is at %s", s.open.ID, path)
		default:
			report("open entry %s: no file is at %s", s.open.ID, path)
		}
	}
}

// checkFinals looks for final entries that no recorder makes.
func (r *Recorder) checkFinals(ctx context.Context, report func(string, ...any)) error {
	for q := (Query{SessionID: r.sessionID, Limit: listPage}); ; {
		page, err := r.cfg.Store.Entries(ctx, q)
		if err != nil {
			return err
		}
		r.storing.Lock()
		given := r.seq
		r.storing.Unlock()
		for _, e := range page {
			if e.Seq > given {
				report("final entry %s has number %d, above the last one given, %d", e.ID, e.Seq, given)
			}
			r.checkFinal(ctx, e, report)
			q.From = e.Seq
		}
		if len(page) < listPage {
			return nil
		}
	}
}

func (r *Recorder) checkFinal(ctx context.Context, e Entry, report func(string, ...any)) {
	if e.Path() == "" {
		report("final entry %s has no path", e.ID)
	}
	if e.Artifact && e.Version == 0 {
		report("artifact %s has no version", e.ID)
	}
	if e.DerivedFrom != "" {
		if from, err := r.cfg.Store.Entry(ctx, e.DerivedFrom); err != nil || !from.Final {
			report("final entry %s is derived from %s, which is no final entry", e.ID, e.DerivedFrom)
		}
	}
}
