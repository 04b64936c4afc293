package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

// TestSideBySide begins, declares, resolves and ends from many sides. Each id begins once.
func TestSideBySide(t *testing.T) {
	const workers, rounds = 8, 60
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	registry := w.Registry()
	var begun [rounds]atomic.Int32
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for n := range rounds {
				id := fmt.Sprint("t", n)
				switch worker % 4 {
				case 0, 1:
					_, err := w.BeginToolUse(ctx, owner, session.ToolUseSpec{ID: id})
					if err == nil {
						begun[n].Add(1)
					} else if !errors.Is(err, session.ErrConflict) {
						t.Error(err)
					}
				case 2:
					u, err := w.Declared("s1", session.Declaration{ToolUseID: id})
					if err != nil || u.ID != id {
						t.Error(u, err)
					}
					if _, err := registry.Execution("s1", "", &u); err != nil {
						t.Error(err)
					}
					w.Window("s1")
				case 3:
					e, err := w.BeginExecution(ctx, owner, session.ExecutionSpec{})
					if err != nil {
						t.Error(err)
						continue
					}
					if _, err := w.EndToolUse(ctx, owner, "", id); err != nil && !errors.Is(err, session.ErrNotFound) {
						t.Error(err)
					}
					if _, err := w.EndExecution(ctx, owner, "", e.ID, session.Completed); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for n := range rounds {
		require.LessOrEqual(t, begun[n].Load(), int32(1), "t%d", n)
	}
	requireOnDisk(t, w)
}

// requireOnDisk ends all that is open and checks that memory and disk agree.
func requireOnDisk(t *testing.T, w *world) {
	t.Helper()
	ctx := context.Background()
	executions, err := w.store.Executions(ctx, "s1")
	require.NoError(t, err)
	ended := map[string]bool{}
	for _, e := range executions {
		if e.Status == session.Running {
			_, err := w.EndExecution(ctx, owner, "s1", e.ID, session.Completed)
			require.NoError(t, err)
		}
		ended[e.ID] = true
	}
	uses, err := w.store.ToolUses(ctx, "s1", false)
	require.NoError(t, err)
	for _, u := range uses {
		require.False(t, u.Open(), u.ID)
		require.False(t, w.ToolUseOpen("s1", u.ID))
		require.True(t, ended[u.ExecutionID])
	}
}

// TestOneImplicitExecution: many first writes at once are collected in one execution.
func TestOneImplicitExecution(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := w.Registry().Execution("s1", "", nil); err != nil {
				t.Error(err)
			}
			if _, err := w.Declared("s1", session.Declaration{ToolUseID: "t"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := w.Executions(context.Background(), owner, "")
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// TestDeleteBesideBegins: no row is left of a session that is deleted while others begin things in it.
func TestDeleteBesideBegins(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.DetachMount("s1")
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 50 {
				_, err := w.BeginToolUse(ctx, owner, session.ToolUseSpec{SessionID: "s1", ID: fmt.Sprint(worker, "-", n)})
				if err != nil && !errors.Is(err, session.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		if err := w.DeleteSession(ctx, owner, "s1"); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	uses, err := w.store.ToolUses(ctx, "s1", false)
	require.NoError(t, err)
	require.Empty(t, uses)
	executions, err := w.store.Executions(ctx, "s1")
	require.NoError(t, err)
	require.Empty(t, executions)
}

// asked is a store that runs do when it is first asked about something of session s2.
type asked struct {
	session.Store
	once *sync.Once
	do   func()
}

func (s asked) ToolUse(ctx context.Context, sessionID, id string) (session.ToolUse, error) {
	if sessionID == "s2" {
		s.once.Do(s.do)
	}
	return s.Store.ToolUse(ctx, sessionID, id)
}

func (s asked) Execution(ctx context.Context, sessionID, id string) (session.Execution, error) {
	if sessionID == "s2" {
		s.once.Do(s.do)
	}
	return s.Store.Execution(ctx, sessionID, id)
}

// TestDeleteBesideEnds: an end that found its session puts no row after the session was deleted.
func TestDeleteBesideEnds(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(c *session.Controller) error{
		"execution": func(c *session.Controller) error {
			_, err := c.EndExecution(ctx, owner, "", "e1", session.Completed)
			return err
		},
		"tool use": func(c *session.Controller) error {
			_, err := c.EndToolUse(ctx, owner, "", "t1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open("s2")
			w.open("s1")
			w.execution(session.ExecutionSpec{SessionID: "s1", ID: "e1"})
			w.toolUse(session.ToolUseSpec{SessionID: "s1", ID: "t1"})
			var c *session.Controller
			c, err := session.New(asked{w.store, &sync.Once{}, func() {
				require.NoError(t, c.DeleteSession(ctx, owner, "s1"))
			}}, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			require.ErrorIs(t, end(c), session.ErrNotFound)
			uses, err := w.store.ToolUses(ctx, "s1", false)
			require.NoError(t, err)
			require.Empty(t, uses)
			executions, err := w.store.Executions(ctx, "s1")
			require.NoError(t, err)
			require.Empty(t, executions)
		})
	}
}
