package artifact

import (
	"context"
	"slices"
	"time"

	"aimon.at/vfsd/change"
)

// The virtual attributes.
const (
	FactToolUse     = "user.aimon.tool_use_id"
	FactExecution   = "user.aimon.execution_id"
	FactAttribution = "user.aimon.attribution"
	FactArtifact    = "user.aimon.artifact_id"
)

// factTimeout bounds the index read of Fact: a process waits in getxattr(2).
const factTimeout = 2 * time.Second

// Fact returns what is known of a file's last write: from its open entries, else from its last
// final one. False where there is none, or no such fact about it.
func (r *Recorder) Fact(f change.FileID, name string) (string, bool) {
	e, open, ok := r.lastEntry(f)
	if !ok {
		return "", false
	}
	if name == FactArtifact && open {
		r.rule(r.rules.pass(), &e)
	}
	switch name {
	case FactToolUse:
		return e.Who.ToolUseID, e.Who.ToolUseID != ""
	case FactExecution:
		return e.Who.ExecutionID, true
	case FactAttribution:
		return string(e.Who.Sureness), true
	case FactArtifact:
		return e.ID, e.Artifact && !e.Removed
	}
	return "", false
}

func (r *Recorder) lastEntry(f change.FileID) (e Entry, open, ok bool) {
	r.mu.Lock()
	r.drainLocked()
	possible := r.finals.possible(f)
	var last *openEntry
	if file := r.open.files[f]; file != nil {
		for _, o := range file.entries {
			if len(o.names) > 0 && (last == nil || !o.changed.Before(last.changed)) {
				last = o
			}
		}
	}
	if last != nil {
		e = last.snapshot()
	}
	r.mu.Unlock()
	if last != nil || !possible {
		return e, true, last != nil
	}
	e, ok = r.lastFinal(f)
	return e, false, ok
}

// lastFinal returns the file's last final entry.
func (r *Recorder) lastFinal(f change.FileID) (Entry, bool) {
	r.mu.Lock()
	for _, e := range slices.Backward(r.pending.finals) {
		if e.File == f {
			r.mu.Unlock()
			return e, true
		}
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), factTimeout)
	defer cancel()
	entries, err := r.cfg.Store.EntriesOf(ctx, r.sessionID, f)
	if err != nil {
		r.log.Warn("cannot read the entries of a file", keyError, err)
	}
	if len(entries) == 0 {
		return Entry{}, false
	}
	return entries[len(entries)-1], true
}
