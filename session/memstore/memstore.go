// Package memstore is session.Store in memory: the reference of its conformance suite, and the
// store of tests that are about something else.
package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"aimon.at/vfsd/session"
)

// Store is an empty store at first. It is safe for concurrent use.
type Store struct {
	mu         sync.Mutex // guards everything below
	sessions   map[string]session.Session
	executions map[key]session.Execution
	toolUses   map[key]session.ToolUse
	syncs      int
}

type key struct{ session, id string }

var _ session.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		sessions:   map[string]session.Session{},
		executions: map[key]session.Execution{},
		toolUses:   map[key]session.ToolUse{},
	}
}

// PutSession implements session.Store.
func (s *Store) PutSession(_ context.Context, v session.Session) error {
	return put(s, s.sessions, v.ID, v)
}

// Session implements session.Store.
func (s *Store) Session(_ context.Context, id string) (session.Session, error) {
	return get(s, s.sessions, id, "session", id)
}

// Sessions implements session.Store.
func (s *Store) Sessions(context.Context) ([]session.Session, error) {
	return sorted(s, s.sessions, func(session.Session) bool { return true },
		func(v session.Session) (time.Time, string) { return v.CreatedAt, v.ID }), nil
}

// DeleteSession implements session.Store.
func (s *Store) DeleteSession(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sessions[id]; !ok {
		return fmt.Errorf("session %q: %w", id, session.ErrNotFound)
	}
	delete(s.sessions, id)
	for k := range s.executions {
		if k.session == id {
			delete(s.executions, k)
		}
	}
	for k := range s.toolUses {
		if k.session == id {
			delete(s.toolUses, k)
		}
	}
	return nil
}

// PutExecution implements session.Store.
func (s *Store) PutExecution(_ context.Context, v session.Execution) error {
	v.EndedAt = clone(v.EndedAt)
	return put(s, s.executions, key{v.SessionID, v.ID}, v)
}

// Execution implements session.Store.
func (s *Store) Execution(_ context.Context, sessionID, id string) (session.Execution, error) {
	return get(s, s.executions, key{sessionID, id}, "execution", id)
}

// Executions implements session.Store.
func (s *Store) Executions(_ context.Context, sessionID string) ([]session.Execution, error) {
	return sorted(s, s.executions, func(v session.Execution) bool { return v.SessionID == sessionID },
		func(v session.Execution) (time.Time, string) { return v.BeganAt, v.ID }), nil
}

// OpenExecutions implements session.Store.
func (s *Store) OpenExecutions(_ context.Context, sessionID string) ([]session.Execution, error) {
	return sorted(s, s.executions, func(v session.Execution) bool { return v.SessionID == sessionID && !v.Status.Ended() },
		func(v session.Execution) (time.Time, string) { return v.BeganAt, v.ID }), nil
}

// PutToolUse implements session.Store.
func (s *Store) PutToolUse(_ context.Context, v session.ToolUse) error {
	v.EndedAt, v.Artifact, v.Process = clone(v.EndedAt), clone(v.Artifact), clone(v.Process)
	return put(s, s.toolUses, key{v.SessionID, v.ID}, v)
}

// ToolUse implements session.Store.
func (s *Store) ToolUse(_ context.Context, sessionID, id string) (session.ToolUse, error) {
	return get(s, s.toolUses, key{sessionID, id}, "tool use", id)
}

// ToolUses implements session.Store.
func (s *Store) ToolUses(_ context.Context, sessionID string, openOnly bool) ([]session.ToolUse, error) {
	return sorted(s, s.toolUses, func(v session.ToolUse) bool { return v.SessionID == sessionID && (v.Open() || !openOnly) },
		func(v session.ToolUse) (time.Time, string) { return v.BeganAt, v.ID }), nil
}

// Sync counts: a test asks Syncs.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	return nil
}

// Syncs returns how often Sync was called.
func (s *Store) Syncs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs
}

func put[K comparable, V any](s *Store, m map[K]V, k K, v V) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m[k] = v
	return nil
}

func get[K comparable, V any](s *Store, m map[K]V, k K, what, id string) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := m[k]
	if !ok {
		return v, fmt.Errorf("%s %q: %w", what, id, session.ErrNotFound)
	}
	return v, nil
}

func sorted[K comparable, V any](s *Store, m map[K]V, keep func(V) bool, order func(V) (time.Time, string)) []V {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []V
	for _, v := range m {
		if keep(v) {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b V) int {
		ta, ia := order(a)
		tb, ib := order(b)
		if c := ta.Compare(tb); c != 0 {
			return c
		}
		return strings.Compare(ia, ib) // any fixed order will do
	})
	return all
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
