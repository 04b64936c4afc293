package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"aimon.at/vfsd/change"
)

// load takes up what the session's last recorder left open. What the files say now counts: a
// daemon that was killed missed the last events.
func (r *Recorder) load(ctx context.Context) (err error) {
	if r.seq, err = r.cfg.Store.LastSeq(ctx, r.sessionID); err != nil {
		return fmt.Errorf("read the last sequence number: %w", err)
	}
	entries, err := r.cfg.Store.OpenEntries(ctx, r.sessionID)
	if err != nil {
		return fmt.Errorf("read open entries: %w", err)
	}
	r.mu.Lock()
	for _, e := range entries {
		r.takeUp(e)
	}
	r.mu.Unlock()
	return r.finish(ctx, func(e *openEntry) bool {
		if e.key.toolUse == "" {
			return r.executionEnded(e.key.execution)
		}
		return !r.inProgress(e)
	})
}

// takeUp compares an open entry with its file. A file that changed while nobody watched stays its
// writer's: a descriptor opened through the mount goes on writing without the daemon, and what a
// killed daemon had not recorded yet was its writer's too. A file that has none of its names any
// more was removed. mu is held.
func (r *Recorder) takeUp(e Entry) {
	names, id, stamp := r.stillNamed(e)
	if len(names) == 0 {
		r.pending.deletes = append(r.pending.deletes, e.ID)
		return
	}
	differs := len(names) != len(e.Names) || id != e.File || stamp != e.Stamp
	e.File, e.Stamp = id, stamp
	o := r.open.add(e)
	o.stored = true
	o.changed = r.now()
	for _, name := range names {
		r.open.claim(name, o.file, func(other *openEntry) bool { return other == o })
	}
	if differs {
		r.changed(o)
	}
}

// stillNamed returns the names that are the entry's file's, in their order, and what it is like.
// A name that cannot be looked at is taken for one.
func (r *Recorder) stillNamed(e Entry) (names []string, id change.FileID, stamp change.Stamp) {
	id, stamp = e.File, e.Stamp
	for _, name := range e.Names {
		nowID, nowStamp, err := r.cfg.Tree.Stat(name)
		switch {
		case err == nil && sameFile(nowID, e.File):
			id, stamp = nowID, nowStamp
			names = append(names, name)
		case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		default:
			r.log.Warn("cannot look at a file at start", keyID, e.ID, keyError, err)
			names = append(names, name)
		}
	}
	return names, id, stamp
}

// sameFile compares inodes over restarts: a device may have another number after a reboot, a birth
// time is nobody else's.
func sameFile(a, b change.FileID) bool {
	if a.Birth != 0 {
		a.Dev = b.Dev
	}
	return a == b
}
