package servertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"aimon.at/vfsd/session"
)

func (f *Fake) seen(c session.Caller) []session.Session {
	var out []session.Session
	for _, s := range f.sessions {
		if c.MaySee(s.Owner) {
			out = append(out, s)
		}
	}
	return out
}

// Session implements server.Sessions.
func (f *Fake) Session(_ context.Context, c session.Caller, id string) (session.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(c, id)
}

func (f *Fake) find(c session.Caller, id string) (session.Session, error) {
	all := f.seen(c)
	if id == "" && len(all) > 1 {
		return session.Session{}, fmt.Errorf("%w: there are several sessions: name one", session.ErrConflict)
	}
	for _, s := range all {
		if id == "" || s.ID == id {
			return s, nil
		}
	}
	return session.Session{}, fmt.Errorf("session %q: %w", id, session.ErrNotFound)
}

// Sessions implements server.Sessions.
func (f *Fake) Sessions(_ context.Context, c session.Caller) ([]session.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen(c), nil
}

// DeleteSession implements server.Sessions.
func (f *Fake) DeleteSession(_ context.Context, c session.Caller, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(c, id)
	f.sessions = slices.DeleteFunc(f.sessions, func(o session.Session) bool { return err == nil && o.ID == s.ID })
	return err
}

// BeginExecution implements server.Sessions.
func (f *Fake) BeginExecution(_ context.Context, c session.Caller, s session.ExecutionSpec) (session.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	owner, err := f.find(c, s.SessionID)
	if err != nil {
		return session.Execution{}, err
	}
	e := session.Execution{
		ID: cmp.Or(s.ID, fmt.Sprintf("exec-%d", len(f.executions)+1)), SessionID: owner.ID, ParentID: s.ParentID,
		Artifacts: owner.Artifacts, Status: session.Running, BeganAt: f.Now(),
	}
	if s.Artifacts != nil {
		e.Artifacts = *s.Artifacts
	}
	f.executions = append(f.executions, e)
	return e, nil
}

func (f *Fake) execution(c session.Caller, sessionID, id string) (*session.Execution, error) {
	var found *session.Execution
	for i := range f.executions {
		e := &f.executions[i]
		if _, err := f.find(c, e.SessionID); err != nil || e.ID != id || sessionID != "" && sessionID != e.SessionID {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several sessions fit: name one", session.ErrConflict)
		}
		found = e
	}
	if found == nil {
		return nil, fmt.Errorf("execution %q: %w", id, session.ErrNotFound)
	}
	return found, nil
}

// Execution implements server.Sessions.
func (f *Fake) Execution(_ context.Context, c session.Caller, sessionID, id string) (session.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.execution(c, sessionID, id)
	if err != nil {
		return session.Execution{}, err
	}
	return *e, nil
}

// Executions implements server.Sessions.
func (f *Fake) Executions(_ context.Context, c session.Caller, sessionID string) ([]session.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(c, sessionID)
	return slices.DeleteFunc(slices.Clone(f.executions), func(e session.Execution) bool { return e.SessionID != s.ID }), err
}

// MarkExecution implements server.Sessions.
func (f *Fake) MarkExecution(_ context.Context, c session.Caller, sessionID, id string) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.execution(c, sessionID, id)
	return uint64(f.seq), err
}

// EndExecution implements server.Sessions.
func (f *Fake) EndExecution(_ context.Context, c session.Caller, sessionID, id string, status session.Status) (session.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.execution(c, sessionID, id)
	if err != nil {
		return session.Execution{}, err
	}
	if e.Status.Ended() {
		return session.Execution{}, fmt.Errorf("%w: execution %s has ended as %s already", session.ErrConflict, id, e.Status)
	}
	e.Status, e.EndedAt = status, new(f.Now())
	return *e, nil
}

// BeginToolUse implements server.Sessions.
func (f *Fake) BeginToolUse(ctx context.Context, c session.Caller, s session.ToolUseSpec) (session.ToolUse, error) {
	t, err := f.reserve(c, s)
	if err != nil || s.Enter == nil {
		return t, err
	}
	path, err := s.Enter(ctx, t.SessionID)
	if err != nil {
		return t, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.toolUses {
		if o := &f.toolUses[i]; o.ID == t.ID && o.SessionID == t.SessionID {
			o.Cgroup = path
			t = *o
		}
	}
	return t, nil
}

func (f *Fake) reserve(c session.Caller, s session.ToolUseSpec) (session.ToolUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := session.CheckToolUseID(s.ID); err != nil {
		return session.ToolUse{}, err
	}
	sessionID := s.SessionID
	if s.ExecutionID != "" {
		e, err := f.execution(c, sessionID, s.ExecutionID)
		if err != nil {
			return session.ToolUse{}, err
		}
		sessionID = e.SessionID
	}
	owner, err := f.find(c, sessionID)
	if err != nil {
		return session.ToolUse{}, err
	}
	t := session.ToolUse{
		ID: s.ID, SessionID: owner.ID, ExecutionID: cmp.Or(s.ExecutionID, "implicit"), Origin: session.OriginAPI,
		Artifact: s.Artifact, Cgroup: s.Cgroup, BeganAt: f.Now(),
	}
	if s.PID != 0 {
		p, uid, err := session.ReadProcess(s.PID)
		if err != nil || !c.MaySee(uid) {
			return session.ToolUse{}, fmt.Errorf("process %d: %w", s.PID, session.ErrNotFound)
		}
		t.Process = &p
	}
	for _, o := range f.toolUses {
		if o.ID == s.ID {
			return session.ToolUse{}, fmt.Errorf("%w: tool use %q was begun already: every call has an id of its own", session.ErrConflict, s.ID)
		}
	}
	f.toolUses = append(f.toolUses, t)
	return t, nil
}

// EndToolUse implements server.Sessions.
func (f *Fake) EndToolUse(_ context.Context, c session.Caller, sessionID, id string) (session.ToolUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.toolUses {
		t := &f.toolUses[i]
		if _, err := f.find(c, t.SessionID); err != nil || t.ID != id || sessionID != "" && t.SessionID != sessionID {
			continue
		}
		if f.EndErr != nil {
			return session.ToolUse{}, f.EndErr
		}
		t.EndedAt = new(f.Now())
		return *t, nil
	}
	return session.ToolUse{}, fmt.Errorf("tool use %q: %w", id, session.ErrNotFound)
}

// ToolUses implements server.Sessions.
func (f *Fake) ToolUses(_ context.Context, c session.Caller, sessionID string) ([]session.ToolUse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(c, sessionID)
	return slices.DeleteFunc(slices.Clone(f.toolUses), func(t session.ToolUse) bool { return t.SessionID != s.ID }), err
}
