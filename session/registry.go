package session

import (
	"context"
	"errors"
	"slices"
)

// Registry is the Controller as attribution asks it (attribution.Registry): while a process waits in
// open(2), so everything that is open is answered from memory.
type Registry struct{ *Controller }

// Registry returns c as attribution asks it.
func (c *Controller) Registry() Registry { return Registry{c} }

// Execution is CollectIn.
func (r Registry) Execution(sessionID, declared string, toolUse *ToolUse) (Execution, error) {
	return r.CollectIn(sessionID, declared, toolUse)
}

// Window returns the ids of the open tool uses of a session that were begun through the API, in
// order of beginning. It answers from memory.
func (c *Controller) Window(sessionID string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.sessions[sessionID]
	if l == nil || len(l.window) == 0 {
		return nil
	}
	uses := make([]*use, 0, len(l.window))
	for _, u := range l.window {
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b *use) int { return a.BeganAt.Compare(b.BeganAt) })
	ids := make([]string, len(uses))
	for i, u := range uses {
		ids[i] = u.ID
	}
	return ids
}

// Declaration is what a process says about itself in its environment.
type Declaration struct {
	ToolUseID   string  // VFSD_TOOL_USE_ID
	ExecutionID string  // VFSD_EXECUTION_ID; "" where unset or not a valid id
	Artifact    *bool   // VFSD_ARTIFACT; nil where unset or not understood
	Process     Process // the process that was seen carrying it
}

// Declared returns the tool use that a process declared in its environment, beginning it where no
// such id was ever used: in the declared execution where that is open, else in the current one.
// One that has ended comes back ended. A known id is answered from memory; a new one costs two
// index reads and a write without sync, so that its row is there before any entry of it.
func (c *Controller) Declared(sessionID string, d Declaration) (ToolUse, error) {
	if err := CheckToolUseID(d.ToolUseID); err != nil {
		return ToolUse{}, err
	}
	l := c.liveOf(sessionID)
	if l == nil {
		return ToolUse{}, noSession(sessionID)
	}
	t := ToolUse{ID: d.ToolUseID, SessionID: sessionID, ExecutionID: d.ExecutionID, Origin: OriginEnvironment, Artifact: d.Artifact}
	if d.Process.PID != 0 {
		t.Process = &d.Process
	}
	if known, ok := c.inMemory(l, t.ID); ok {
		return known, nil
	}
	leave, err := c.enter(l)
	if err != nil {
		return ToolUse{}, err
	}
	defer leave()
	ctx := context.Background()
	for {
		if t.ExecutionID != "" && !c.executionOpen(l, t.ExecutionID) {
			t.ExecutionID = ""
		}
		u, _, err := c.claim(ctx, l, t, nil)
		var ended errEnded
		switch {
		case errors.As(err, &ended):
			return ended.ToolUse, nil
		case err == nil:
			return c.valueOf(u), nil
		case t.ExecutionID == "" || c.executionOpen(l, t.ExecutionID):
			return ToolUse{}, err
		} // otherwise the declared execution ended meanwhile: once more without it
	}
}

func (c *Controller) inMemory(l *live, id string) (ToolUse, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if u := l.uses[id]; u != nil && u.begun() {
		return u.ToolUse, true
	}
	t, ok := l.ended[id]
	return t, ok
}

// begun reports whether the begin succeeded.
func (b *begin) begun() bool {
	select {
	case <-b.ready:
		return b.err == nil
	default:
		return false
	}
}

func (c *Controller) executionOpen(l *live, id string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r := l.executions[id]
	return r != nil && r.open()
}

// CollectIn returns the execution that a change in the session is collected in: the declared one
// where that is open in the session, else the one of the tool use, open or ended, where that is
// the session's, else the current one, beginning the implicit one where there is none.
func (c *Controller) CollectIn(sessionID, declared string, toolUse *ToolUse) (Execution, error) {
	l := c.liveOf(sessionID)
	if l == nil {
		return Execution{}, noSession(sessionID)
	}
	if e, ok := c.openExecution(l, declared); ok {
		return e, nil
	}
	ctx := context.Background()
	if toolUse != nil && toolUse.SessionID == sessionID {
		e, err := c.execution(ctx, l, toolUse.ExecutionID)
		if !errors.Is(err, ErrNotFound) {
			return e, err
		}
	}
	if e, ok := c.currentExecution(l); ok {
		return e, nil
	}
	leave, err := c.enter(l)
	if err != nil {
		return Execution{}, err
	}
	defer leave()
	r, err := c.runFor(ctx, l, "")
	if err != nil {
		return Execution{}, err
	}
	return c.executionOf(r), nil
}

// CollectInto returns the id of the execution that a change by hand is collected in: the tool use's,
// for "" the current one. It is ErrNotFound where the tool use was never begun.
func (c *Controller) CollectInto(sessionID, toolUseID string) (string, error) {
	var t *ToolUse
	if toolUseID != "" {
		l := c.liveOf(sessionID)
		if l == nil {
			return "", noSession(sessionID)
		}
		known, err := c.toolUse(context.Background(), l, toolUseID)
		if err != nil {
			return "", err
		}
		t = &known
	}
	e, err := c.CollectIn(sessionID, "", t)
	return e.ID, err
}

func (c *Controller) openExecution(l *live, id string) (Execution, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if r := l.executions[id]; r != nil && r.open() {
		return r.Execution, true
	}
	return Execution{}, false
}

func (c *Controller) currentExecution(l *live) (Execution, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if l.current != nil && l.current.open() {
		return l.current.Execution, true
	}
	return Execution{}, false
}
