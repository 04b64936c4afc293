package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
)

// BeginExecution begins an execution in a session of the caller's, with a new id where none is
// given. It ends the implicit one, unless the new one is a fork below it.
func (c *Controller) BeginExecution(ctx context.Context, caller Caller, s ExecutionSpec) (Execution, error) {
	if err := checkExecutionSpec(s); err != nil {
		return Execution{}, err
	}
	var has wanted
	if s.ParentID != "" {
		has = c.withExecution(ctx, s.ParentID)
	}
	l, err := c.find(caller, s.SessionID, has)
	if err != nil {
		return Execution{}, err
	}
	leave, err := c.enter(l)
	if err != nil {
		return Execution{}, err
	}
	defer leave()
	e := Execution{ID: s.ID, SessionID: l.ID, ParentID: s.ParentID, Status: Running}
	if e.ID == "" {
		e.ID = ulid.Make().String()
	}
	r, err := c.beginExecution(ctx, l, e, s.Artifacts)
	if err != nil {
		return Execution{}, err
	}
	c.endImplicit(ctx, l, r)
	return c.executionOf(r), nil
}

func checkExecutionSpec(s ExecutionSpec) error {
	if s.ID != "" {
		if err := CheckID("execution", s.ID); err != nil {
			return err
		}
	}
	if s.ParentID != "" {
		return CheckID("parent execution", s.ParentID)
	}
	return nil
}

// beginExecution begins e, which has its ids and Implicit, on disk and in memory.
func (c *Controller) beginExecution(ctx context.Context, l *live, e Execution, artifacts *bool) (*run, error) {
	r, err := c.reserveRun(l, e, artifacts)
	if err != nil {
		return nil, err
	}
	_, err = c.store.Execution(ctx, l.ID, e.ID)
	switch {
	case err == nil:
		err = fmt.Errorf("%w: execution %s was begun before and has ended: use another id", ErrConflict, e.ID)
	case errors.Is(err, ErrNotFound):
		err = c.store.PutExecution(context.WithoutCancel(ctx), c.executionOf(r))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		r.err = fmt.Errorf("begin execution %s: %w", e.ID, err)
		delete(l.executions, e.ID)
	} else if e.ParentID != "" {
		l.forks[e.ParentID] = append(l.forks[e.ParentID], e.ID)
	}
	close(r.ready)
	l.choose()
	return r, r.err
}

// reserveRun takes the id in memory.
func (c *Controller) reserveRun(l *live, e Execution, artifacts *bool) (*run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.deleting {
		return nil, noSession(l.ID)
	}
	if e.Implicit && l.current != nil {
		return nil, errRetry
	}
	if l.executions[e.ID] != nil {
		return nil, fmt.Errorf("%w: execution %s is already open: use another id, or end it first", ErrConflict, e.ID)
	}
	if e.ParentID != "" {
		if p := l.executions[e.ParentID]; p == nil || !p.open() {
			return nil, fmt.Errorf("%w: the parent execution %s is not open in session %s: begin it first", ErrConflict, e.ParentID, l.ID)
		}
	}
	e.Artifacts = l.Artifacts
	if artifacts != nil {
		e.Artifacts = *artifacts
	}
	e.BeganAt = c.now()
	r := &run{Execution: e, begin: newBegin()}
	l.executions[e.ID] = r
	if e.Implicit {
		l.current = r // who needs an execution meanwhile waits for this one
	}
	return r, nil
}

// open reports whether the run began and has not ended. mu is held.
func (r *run) open() bool {
	select {
	case <-r.ready:
		return r.err == nil && r.Status == Running
	default:
		return false
	}
}

// choose finds the current execution. mu is held.
func (l *live) choose() {
	l.current = nil
	for _, r := range l.executions {
		beginning := r.Implicit && r.err == nil && r.Status == Running
		if r.ParentID != "" || !r.open() && !beginning {
			continue
		}
		if l.current == nil || l.current.Implicit && !r.Implicit ||
			l.current.Implicit == r.Implicit && r.BeganAt.After(l.current.BeganAt) {
			l.current = r
		}
	}
}

// Execution returns one execution.
func (c *Controller) Execution(ctx context.Context, caller Caller, sessionID, id string) (Execution, error) {
	l, err := c.find(caller, sessionID, c.withExecution(ctx, id))
	if err != nil {
		return Execution{}, err
	}
	return c.execution(ctx, l, id)
}

// Executions returns the executions of a session in order of beginning.
func (c *Controller) Executions(ctx context.Context, caller Caller, sessionID string) ([]Execution, error) {
	l, err := c.find(caller, sessionID, wanted{})
	if err != nil {
		return nil, err
	}
	all, err := c.store.Executions(ctx, l.ID)
	if err != nil {
		return nil, fmt.Errorf("executions of session %s: %w", l.ID, err)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, e := range all {
		if r := l.executions[e.ID]; r != nil {
			all[i] = r.Execution // it may be ending
		}
	}
	return all, nil
}

// MarkExecution ends the current iteration of an execution and returns the mark. It needs the
// session's live mount: nothing else knows what is still in flight.
func (c *Controller) MarkExecution(ctx context.Context, caller Caller, sessionID, id string) (uint64, error) {
	l, err := c.find(caller, sessionID, c.withExecution(ctx, id))
	if err != nil {
		return 0, err
	}
	e, err := c.execution(ctx, l, id)
	if err != nil {
		return 0, err
	}
	collector := c.collectorOf(l)
	if collector == nil {
		return 0, fmt.Errorf("%w: session %s has no live mount to mark in: mount it first", ErrConflict, l.ID)
	}
	mark, err := collector.Mark(ctx, e)
	if err != nil {
		return 0, fmt.Errorf("mark execution %s: %w", id, err)
	}
	return mark, nil
}

func (c *Controller) collectorOf(l *live) Collector {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return l.collector
}

// Forks returns the ids of the forks of an execution and of their forks, open and ended, each
// after its parent.
func (c *Controller) Forks(sessionID, executionID string) []string {
	l := c.liveOf(sessionID)
	if l == nil {
		return nil
	}
	if err := c.learnForks(context.Background(), l); err != nil {
		c.log.Warn("forks could not be looked up", "session", sessionID, "error", err)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := slices.Clone(l.forks[executionID])
	for i := 0; i < len(all); i++ {
		all = append(all, l.forks[all[i]]...)
	}
	return all
}

// ExecutionOf returns an execution of a session: from memory where it is open, else with one index read.
func (c *Controller) ExecutionOf(sessionID, id string) (Execution, bool) {
	l := c.liveOf(sessionID)
	if l == nil {
		return Execution{}, false
	}
	e, err := c.execution(context.Background(), l, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		c.log.Warn("an execution could not be looked up", "session", sessionID, "execution", id, "error", err)
	}
	return e, err == nil
}

func (c *Controller) liveOf(sessionID string) *live {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if l := c.sessions[sessionID]; l != nil && l.known() && !l.deleting {
		return l
	}
	return nil
}
