package session

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// EndExecution ends an execution with one of the end statuses, after its open tool uses. Asked for
// again with the same status it answers the same; with another one it is ErrConflict.
func (c *Controller) EndExecution(ctx context.Context, caller Caller, sessionID, id string, status Status) (Execution, error) {
	if !status.Ended() {
		return Execution{}, fmt.Errorf("%w status %.40q: use COMPLETED, TRUNCATED, ERROR, INTERRUPTED, SUSPENDED, MAX_ITERATIONS or COMMAND", ErrInvalid, status)
	}
	l, err := c.find(caller, sessionID, c.withExecution(ctx, id))
	if err != nil {
		return Execution{}, err
	}
	leave, err := c.enter(l)
	if err != nil {
		return Execution{}, err
	}
	defer leave()
	if r := c.runOf(l, id); r != nil && r.wait(ctx) == nil {
		return c.endRun(ctx, l, r, status)
	}
	e, err := c.execution(ctx, l, id)
	if err != nil {
		return Execution{}, err
	}
	return e, sameEnd(e, status)
}

func sameEnd(e Execution, status Status) error {
	if e.Status == status {
		return nil
	}
	return fmt.Errorf("%w: execution %s has already ended as %s", ErrConflict, e.ID, e.Status)
}

// endRun ends r in memory, so that nothing more begins in it, then its tool uses, then r itself in
// the collector and on disk. An end that was begun is carried through.
func (c *Controller) endRun(ctx context.Context, l *live, r *run, status Status) (Execution, error) {
	ctx = context.WithoutCancel(ctx)
	e, uses, err := c.markEnded(l, r, status)
	if err != nil {
		return e, err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.done {
		return e, nil
	}
	if err := c.endAll(ctx, l, uses); err != nil {
		return e, fmt.Errorf("end execution %s: %w", e.ID, err)
	}
	if collector := c.collectorOf(l); collector != nil {
		if err := collector.FinishExecution(ctx, e); err != nil {
			return e, fmt.Errorf("end execution %s: collect: %w", e.ID, err)
		}
	}
	if err := errors.Join(c.store.PutExecution(ctx, e), c.store.Sync()); err != nil {
		return e, fmt.Errorf("end execution %s: %w", e.ID, err)
	}
	r.done = true
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(l.executions, e.ID)
	return e, nil
}

// markEnded ends r in memory and returns its tool uses that are not yet ended on disk.
func (c *Controller) markEnded(l *live, r *run, status Status) (Execution, []*use, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Status.Ended() {
		if err := sameEnd(r.Execution, status); err != nil {
			return r.Execution, nil, err
		}
	} else {
		now := c.now()
		r.Status, r.EndedAt = status, &now
		l.choose()
	}
	var uses []*use
	for _, u := range l.uses {
		if u.ExecutionID == r.ID {
			uses = append(uses, u)
		}
	}
	return r.Execution, uses, nil
}

// endAll ends tool uses side by side: each may wait for releases in flight.
func (c *Controller) endAll(ctx context.Context, l *live, uses []*use) error {
	var g errgroup.Group
	g.SetLimit(8)
	for _, u := range uses {
		g.Go(func() error {
			if u.wait(ctx) != nil {
				return nil // it never began
			}
			_, err := c.endUse(ctx, l, u)
			return err
		})
	}
	return g.Wait()
}

// endImplicit ends the implicit execution as COMPLETED once r has begun beside it. Its failure is
// not r's: the implicit one is ended in memory, and the rest is tried again when the next execution
// begins.
func (c *Controller) endImplicit(ctx context.Context, l *live, r *run) {
	for _, implicit := range c.implicitBeside(l, r) {
		if implicit.wait(ctx) != nil {
			continue
		}
		status := Completed
		if e := c.executionOf(implicit); e.Status.Ended() {
			status = e.Status
		}
		if _, err := c.endRun(ctx, l, implicit, status); err != nil {
			c.log.Warn("the implicit execution could not be ended", "session", l.ID, "execution", implicit.ID, "error", err)
		}
	}
}

// implicitBeside returns the implicit executions that are no ancestor of r: the open one, and those
// whose end failed half way.
func (c *Controller) implicitBeside(l *live, r *run) (found []*run) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	above := map[string]bool{}
	for p := r; p != nil && !above[p.ID]; p = l.executions[p.ParentID] {
		above[p.ID] = true
	}
	for id, o := range l.executions {
		if o.Implicit && !above[id] {
			found = append(found, o)
		}
	}
	return found
}
