package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// BeginToolUse begins a tool use in an execution of a session of the caller's, the current one
// where none is named. An id is used once in a session: one that is open or has ended is ErrConflict,
// but for one that a writing process declared: that is adopted.
func (c *Controller) BeginToolUse(ctx context.Context, caller Caller, s ToolUseSpec) (ToolUse, error) {
	if err := checkToolUseSpec(s); err != nil {
		return ToolUse{}, err
	}
	var has wanted
	if s.ExecutionID != "" {
		has = c.withExecution(ctx, s.ExecutionID)
	}
	l, err := c.find(caller, s.SessionID, has)
	if err != nil {
		return ToolUse{}, err
	}
	process, err := c.processFor(caller, s.PID)
	if err != nil {
		return ToolUse{}, err
	}
	leave, err := c.enter(l)
	if err != nil {
		return ToolUse{}, err
	}
	defer leave()
	defer c.sweep()
	t := ToolUse{
		ID: s.ID, SessionID: l.ID, ExecutionID: s.ExecutionID, Origin: OriginAPI,
		Artifact: s.Artifact, Process: process, Cgroup: s.Cgroup,
	}
	enter := c.entering(ctx, l.ID, s)
	if enter == nil {
		t.BeganAt = c.turningPoint(ctx, t)
	}
	for {
		u, mine, err := c.claim(ctx, l, t, enter)
		switch {
		case err != nil:
			return ToolUse{}, err
		case mine:
			return c.valueOf(u), nil
		}
		adopted, err := c.adopt(ctx, l, u, t, enter)
		if !errors.Is(err, errRetry) {
			return adopted, err
		}
	}
}

// entering returns what puts the process of s into its cgroup, however often it is called, and answers with the
// path, or "" where there is none; nil where that is not asked for.
func (c *Controller) entering(ctx context.Context, sessionID string, s ToolUseSpec) func() string {
	if s.Enter == nil {
		return nil
	}
	return sync.OnceValue(func() string {
		path, err := s.Enter(ctx, sessionID)
		if err != nil {
			c.log.Debug("no cgroup for a tool use, its ancestry decides", "session", sessionID, "error", err)
			return ""
		}
		return path
	})
}

func checkToolUseSpec(s ToolUseSpec) error {
	if err := CheckToolUseID(s.ID); err != nil {
		return err
	}
	if s.ExecutionID != "" {
		if err := CheckID("execution", s.ExecutionID); err != nil {
			return err
		}
	}
	if s.PID < 0 {
		return fmt.Errorf("%w pid %d", ErrInvalid, s.PID)
	}
	return nil
}

// processFor looks at the process that a tool use is to be begun with: one of the caller's own.
func (c *Controller) processFor(caller Caller, pid int) (*Process, error) {
	if pid == 0 {
		return nil, nil
	}
	if pid == 1 {
		return nil, fmt.Errorf("%w pid 1: everything descends from it; give the process that serves the tool use", ErrInvalid)
	}
	p, uid, err := c.processOf(pid)
	if err == nil && !caller.Privileged && uid != caller.UID {
		err = fmt.Errorf("process %d: %w", pid, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("begin a tool use with a process of yours: %w", err)
	}
	return &p, nil
}

// EndToolUse ends a tool use. When it answers, what the tool use wrote is final and durable. Asked
// for again it answers the same.
func (c *Controller) EndToolUse(ctx context.Context, caller Caller, sessionID, id string) (ToolUse, error) {
	l, err := c.find(caller, sessionID, c.withToolUse(ctx, id))
	if err != nil {
		return ToolUse{}, err
	}
	return c.endToolUse(ctx, l, id)
}

// DeclaredGone is told that no process carries a declared tool use any more, and ends it. One that
// was begun or adopted through the API is left to the API.
func (c *Controller) DeclaredGone(sessionID, id string) error {
	l := c.liveOf(sessionID)
	if l == nil {
		return noSession(sessionID)
	}
	leave, err := c.enter(l)
	if err != nil {
		return err
	}
	defer leave()
	ctx := context.Background()
	u := c.useOf(l, id)
	if u == nil || u.wait(ctx) != nil {
		_, err = c.toolUse(ctx, l, id)
		return err
	}
	u.turn.Lock()
	defer u.turn.Unlock()
	if c.valueOf(u).Origin != OriginEnvironment {
		return nil
	}
	_, err = c.endUseInTurn(ctx, l, u)
	return err
}

func (c *Controller) endToolUse(ctx context.Context, l *live, id string) (ToolUse, error) {
	leave, err := c.enter(l)
	if err != nil {
		return ToolUse{}, err
	}
	defer leave()
	if u := c.useOf(l, id); u != nil && u.wait(ctx) == nil {
		return c.endUse(ctx, l, u)
	}
	return c.toolUse(ctx, l, id)
}

// endUse ends u in memory, in the collector and on disk. An end that was begun is carried through.
func (c *Controller) endUse(ctx context.Context, l *live, u *use) (ToolUse, error) {
	ctx = context.WithoutCancel(ctx)
	u.turn.Lock()
	defer u.turn.Unlock()
	return c.endUseInTurn(ctx, l, u)
}

func (c *Controller) endUseInTurn(ctx context.Context, l *live, u *use) (ToolUse, error) {
	t := c.markUseEnded(ctx, l, u)
	if u.done {
		return t, nil
	}
	if collector := c.collectorOf(l); collector != nil {
		if err := collector.FinishToolUse(ctx, t); err != nil {
			return t, fmt.Errorf("end tool use %q: collect: %w", t.ID, err)
		}
	}
	if err := errors.Join(c.store.PutToolUse(ctx, t), c.store.Sync()); err != nil {
		return t, fmt.Errorf("end tool use %q: %w", t.ID, err)
	}
	u.done = true
	c.mu.Lock()
	defer c.mu.Unlock()
	l.ended.add(t)
	delete(l.uses, t.ID)
	return t, nil
}

// markUseEnded makes the writes from here on late.
func (c *Controller) markUseEnded(ctx context.Context, l *live, u *use) ToolUse {
	t := c.valueOf(u)
	if !t.Open() {
		return t
	}
	at := c.turningPoint(ctx, t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.Open() {
		u.EndedAt = &at
		if u.Origin == OriginEnvironment {
			l.declared--
		}
		delete(l.window, u.ID)
		l.past.add(u.ToolUse)
	}
	return u.ToolUse
}

// ToolUses returns the tool uses of a session in order of beginning.
func (c *Controller) ToolUses(ctx context.Context, caller Caller, sessionID string) ([]ToolUse, error) {
	l, err := c.find(caller, sessionID, wanted{})
	if err != nil {
		return nil, err
	}
	all, err := c.store.ToolUses(ctx, l.ID, false)
	if err != nil {
		return nil, fmt.Errorf("tool uses of session %s: %w", l.ID, err)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, t := range all {
		if u := l.uses[t.ID]; u != nil {
			all[i] = u.ToolUse // it may be ending
		}
	}
	return all, nil
}

// ToolUseOpen reports whether the tool use is open. It answers from memory.
func (c *Controller) ToolUseOpen(sessionID, id string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.sessions[sessionID]
	if l == nil {
		return false
	}
	u := l.uses[id]
	return u != nil && u.Open()
}
