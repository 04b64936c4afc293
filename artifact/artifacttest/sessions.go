package artifacttest

import (
	"fmt"
	"sync"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

var _ artifact.Sessions = (*Sessions)(nil)

// Sessions is an artifact.Sessions of one session in memory. The zero value has nothing begun.
type Sessions struct {
	mu         sync.Mutex // guards all below
	toolUses   map[string]*toolUse
	executions map[string]session.Execution
	current    string
}

type toolUse struct {
	execution string
	open      bool
}

// Begin begins an execution, which is the current one from here on.
func (s *Sessions) Begin(id, parent string, artifacts bool) session.Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.executions == nil {
		s.executions, s.toolUses = map[string]session.Execution{}, map[string]*toolUse{}
	}
	x := session.Execution{ID: id, SessionID: "s1", ParentID: parent, Artifacts: artifacts, Status: session.Running}
	s.executions[id], s.current = x, id
	return x
}

// End ends an execution.
func (s *Sessions) End(id string) session.Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.executions[id]
	x.Status = session.Error
	s.executions[id] = x
	return x
}

// BeginTool begins a tool use.
func (s *Sessions) BeginTool(id, execution string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toolUses[id] = &toolUse{execution, true}
}

// EndTool ends a tool use.
func (s *Sessions) EndTool(id string) session.ToolUse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toolUses[id].open = false
	return session.ToolUse{ID: id, SessionID: "s1", ExecutionID: s.toolUses[id].execution}
}

// ToolUseOpen reports whether the tool use is open.
func (s *Sessions) ToolUseOpen(_, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.toolUses[id]
	return t != nil && t.open
}

// ExecutionOf returns an execution.
func (s *Sessions) ExecutionOf(_, id string) (session.Execution, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.executions[id]
	return x, ok
}

// Forks returns all executions below one.
func (s *Sessions) Forks(_, id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.below(id)
}

func (s *Sessions) below(id string) []string {
	var forks []string
	for _, x := range s.executions {
		if x.ParentID == id {
			forks = append(forks, x.ID)
			forks = append(forks, s.below(x.ID)...)
		}
	}
	return forks
}

// CollectInto returns where a change by hand is collected.
func (s *Sessions) CollectInto(_, toolUseID string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if toolUseID == "" {
		return s.current, nil
	}
	t := s.toolUses[toolUseID]
	if t == nil {
		return "", fmt.Errorf("tool use %q: %w", toolUseID, session.ErrNotFound)
	}
	return t.execution, nil
}
