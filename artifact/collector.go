package artifact

import (
	"context"
	"fmt"
	"slices"
	"time"

	"aimon.at/vfsd/session"
)

// maxEnded bounds how many ended tool uses are remembered. Of one forgotten, a write by a descriptor
// that it opened before its end is not marked late.
const maxEnded = 100_000

var _ session.Collector = (*Recorder)(nil)

// FinishToolUse waits for releases in flight, at most as long as configured, and makes the open
// entries of t final.
func (r *Recorder) FinishToolUse(ctx context.Context, t session.ToolUse) error {
	r.settleHandles(ctx, t.ID)
	r.drain()
	r.ended(t.ID, "")
	err := r.finish(ctx, func(e *openEntry) bool { return e.key.toolUse == t.ID })
	if err != nil {
		return fmt.Errorf("finish tool use %q: %w", t.ID, err)
	}
	return nil
}

// FinishExecution makes all open entries of e final, also those of tool uses that are still open:
// they end with it.
func (r *Recorder) FinishExecution(ctx context.Context, e session.Execution) error {
	r.settleHandles(ctx, "")
	r.drain()
	r.ended("", e.ID)
	err := r.finish(ctx, func(o *openEntry) bool { return o.key.execution == e.ID })
	if err != nil {
		return fmt.Errorf("finish execution %q: %w", e.ID, err)
	}
	return nil
}

// ended notes what has ended, so that what is written from here on is late.
func (r *Recorder) ended(toolUseID, executionID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.endedTools) >= maxEnded {
		clear(r.endedTools)
	}
	if toolUseID != "" {
		r.endedTools[toolUseID] = true
	}
	if executionID != "" {
		r.endedExecutions[executionID] = true
	}
}

// Mark makes final what is nobody's work in progress, in e and its forks, and returns the greatest
// sequence number given so far. For the releases in flight of what it makes final it waits as an end does.
func (r *Recorder) Mark(ctx context.Context, e session.Execution) (uint64, error) {
	executions := append(r.cfg.Sessions.Forks(r.sessionID, e.ID), e.ID)
	over := func(o *openEntry) bool { return slices.Contains(executions, o.key.execution) && !r.inProgress(o) }
	r.settleFor(ctx, over)
	err := r.finishUnsynced(ctx, over)
	var mark uint64
	if err == nil {
		mark, err = r.lastStored(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("mark execution %q: %w", e.ID, err)
	}
	return mark, nil
}

// lastStored makes everything that is final durable and returns the greatest number among it. A number
// that the Store does not know would be given again after a crash.
func (r *Recorder) lastStored(ctx context.Context) (uint64, error) {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.flush(ctx); err != nil {
		return 0, err
	}
	last, err := r.cfg.Store.LastSeq(ctx, r.sessionID)
	if err != nil {
		return 0, fmt.Errorf("read the last sequence number: %w", err)
	}
	if err := r.cfg.Store.Sync(); err != nil {
		return 0, fmt.Errorf("sync the index: %w", err)
	}
	return last, nil
}

// inProgress reports whether the entry's tool use is open. No lock is held.
func (r *Recorder) inProgress(e *openEntry) bool {
	return e.key.toolUse != "" && r.cfg.Sessions.ToolUseOpen(r.sessionID, e.key.toolUse)
}

// sweep makes late entries of ended executions final that have been quiet for a while, and what
// the end of an execution failed to make final.
func (r *Recorder) sweep(ctx context.Context) {
	r.drain()
	quiet := r.quiet()
	ended := map[string]bool{}
	for _, e := range quiet {
		id := e.key.execution
		if _, known := ended[id]; !known {
			ended[id] = r.executionEnded(id)
		}
	}
	over := map[*openEntry]bool{}
	for _, e := range quiet {
		if ended[e.key.execution] && !r.inProgress(e) {
			over[e] = true
		}
	}
	if len(over) == 0 {
		return
	}
	if err := r.finish(ctx, func(e *openEntry) bool { return over[e] }); err != nil && ctx.Err() == nil {
		r.log.Error("cannot make late entries final: it is tried again", keyError, err)
	}
}

// quiet returns the entries with a name that no event touched for a while.
func (r *Recorder) quiet() []*openEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var quiet []*openEntry
	for _, e := range r.open.entries {
		if time.Since(e.changed) >= r.cfg.Quiet && len(e.names) > 0 {
			quiet = append(quiet, e)
		}
	}
	return quiet
}

// executionEnded reports true for an unknown execution: nothing will end it.
func (r *Recorder) executionEnded(id string) bool {
	x, ok := r.cfg.Sessions.ExecutionOf(r.sessionID, id)
	return !ok || x.Status.Ended()
}
