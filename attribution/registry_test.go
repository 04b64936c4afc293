package attribution

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"aimon.at/vfsd/session"
)

// fakeRegistry is the session controller as the resolver sees it, in memory.
type fakeRegistry struct {
	mu     sync.Mutex
	uses   []session.ToolUse
	seen   []Declaration
	execs  map[string]bool // open ones, by id
	refuse error           // what Declared fails with for a new id
}

func newFake() *fakeRegistry { return &fakeRegistry{execs: map[string]bool{"current": true}} }

// begin adds an open tool use of the API in session s1.
func (f *fakeRegistry) begin(id string, change ...func(*session.ToolUse)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := session.ToolUse{ID: id, SessionID: "s1", ExecutionID: "exec-" + id, Origin: session.OriginAPI, BeganAt: time.Now()}
	for _, c := range change {
		c(&t)
	}
	f.execs[t.ExecutionID] = true
	f.uses = append(f.uses, t)
}

func (f *fakeRegistry) end(id string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.uses {
		if f.uses[i].ID == id {
			f.uses[i].EndedAt = &at
		}
	}
}

func with(p session.Process) func(*session.ToolUse) {
	return func(t *session.ToolUse) { t.Process = &p }
}

func in(path string) func(*session.ToolUse) { return func(t *session.ToolUse) { t.Cgroup = path } }

func of(sessionID string) func(*session.ToolUse) {
	return func(t *session.ToolUse) { t.SessionID = sessionID }
}

func at(when time.Time) func(*session.ToolUse) {
	return func(t *session.ToolUse) { t.BeganAt = when }
}

func (f *fakeRegistry) find(match func(session.ToolUse) bool) []session.ToolUse {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []session.ToolUse
	for _, t := range f.uses {
		if match(t) {
			list = append(list, t)
		}
	}
	return list
}

func (f *fakeRegistry) ByCgroup(path string) (session.ToolUse, bool) {
	list := f.find(func(t session.ToolUse) bool { return t.Cgroup == path })
	if len(list) == 0 {
		return session.ToolUse{}, false
	}
	return list[0], true
}

func (f *fakeRegistry) ByProcess(pid int) []session.ToolUse {
	return f.find(func(t session.ToolUse) bool { return t.Process != nil && t.Process.PID == pid })
}

func (f *fakeRegistry) Window(sessionID string) []string {
	return ids(f.find(func(t session.ToolUse) bool {
		return t.SessionID == sessionID && t.Open() && t.Origin == session.OriginAPI
	}))
}

func (f *fakeRegistry) WasOpen(sessionID string, from, to time.Time) []session.ToolUse {
	return f.find(func(t session.ToolUse) bool {
		return t.SessionID == sessionID && t.Origin == session.OriginAPI && !t.Open() && !t.BeganAt.After(to) && !t.EndedAt.Before(from)
	})
}

func (f *fakeRegistry) Declared(sessionID string, d Declaration) (session.ToolUse, error) {
	if err := session.CheckToolUseID(d.ToolUseID); err != nil {
		return session.ToolUse{}, err
	}
	list := f.find(func(t session.ToolUse) bool { return t.SessionID == sessionID && t.ID == d.ToolUseID })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, d)
	if len(list) > 0 {
		return list[0], nil
	}
	if f.refuse != nil {
		return session.ToolUse{}, f.refuse
	}
	t := session.ToolUse{
		ID: d.ToolUseID, SessionID: sessionID, ExecutionID: "current", Origin: session.OriginEnvironment,
		Artifact: d.Artifact, BeganAt: time.Now(),
	}
	f.uses = append(f.uses, t)
	return t, nil
}

func (f *fakeRegistry) Execution(sessionID, declared string, t *session.ToolUse) (session.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case sessionID != "s1":
		return session.Execution{}, fmt.Errorf("%w session %s", session.ErrNotFound, sessionID)
	case f.execs[declared]:
		return session.Execution{ID: declared}, nil
	case t != nil:
		return session.Execution{ID: t.ExecutionID}, nil
	}
	return session.Execution{ID: "current"}, nil
}

// declared returns the ids that were looked up.
func (f *fakeRegistry) declared() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, d := range f.seen {
		list = append(list, d.ToolUseID)
	}
	slices.Sort(list)
	return list
}
