package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestOpenSession(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	_, err := w.OpenSession(ctx, session.Session{ID: "a/b", Owner: 1000})
	require.ErrorIs(t, err, session.ErrInvalid)
	s, err := w.OpenSession(ctx, session.Session{ID: "s1", Owner: 1000, Source: "/a"})
	require.NoError(t, err)
	require.False(t, s.CreatedAt.IsZero())
	require.NoError(t, w.AttachMount("s1", &collector{}))
	require.ErrorIs(t, w.AttachMount("s1", &collector{}), session.ErrConflict)
	require.ErrorIs(t, w.AttachMount("s9", &collector{}), session.ErrNotFound)
	_, err = w.OpenSession(ctx, session.Session{ID: "s1", Owner: 1000, Source: "/b"})
	require.ErrorIs(t, err, session.ErrConflict)

	w.DetachMount("s1")
	_, err = w.OpenSession(ctx, session.Session{ID: "s1", Owner: 1001, Source: "/b"})
	require.ErrorIs(t, err, session.ErrConflict)
	again, err := w.OpenSession(ctx, session.Session{ID: "s1", Owner: 1000, Source: "/b", Artifacts: true})
	require.NoError(t, err)
	require.Equal(t, s.CreatedAt, again.CreatedAt)
	require.NoError(t, w.AttachMount("s1", &collector{}))
	stored, err := w.store.Session(ctx, "s1")
	require.NoError(t, err)
	require.Equal(t, again, stored)
	require.Equal(t, "/b", stored.Source)
}

func TestDeleteSession(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.toolUse(session.ToolUseSpec{ID: "t1", PID: 100, Cgroup: "/c"})
	require.ErrorIs(t, w.DeleteSession(ctx, owner, ""), session.ErrInvalid)
	require.ErrorIs(t, w.DeleteSession(ctx, owner, "s1"), session.ErrConflict)
	w.DetachMount("s1")
	require.NoError(t, w.DeleteSession(ctx, owner, "s1"))
	_, err := w.Session(ctx, root, "s1")
	require.ErrorIs(t, err, session.ErrNotFound)
	require.Empty(t, w.ByProcess(100))
	_, ok := w.ByCgroup("/c")
	require.False(t, ok)
	require.ErrorIs(t, w.DeleteSession(ctx, owner, "s1"), session.ErrNotFound)

	w.open("s1")
	require.True(t, w.declare("t1").Open(), "a new session of the same name knows nothing")
}

func TestRestart(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	w.processes.start(101, 7)
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.execution(session.ExecutionSpec{ID: "e2"})
	lives := w.toolUse(session.ToolUseSpec{ID: "lives", PID: 100, Cgroup: "/c"})
	w.toolUse(session.ToolUseSpec{ID: "gone", PID: 101, ExecutionID: "e1"})
	declared := w.declare("declared")
	w.toolUse(session.ToolUseSpec{ID: "ended"})
	_, err := w.EndToolUse(ctx, owner, "", "ended")
	require.NoError(t, err)
	w.processes.start(101, 8) // another process

	w.restart()
	require.Equal(t, []string{"lives", "gone"}, w.Window("s1"))
	require.Equal(t, []session.ToolUse{lives}, w.ByProcess(100))
	require.Empty(t, w.ByProcess(101))
	u, ok := w.ByCgroup("/c")
	require.True(t, ok)
	require.Equal(t, lives, u)
	require.Equal(t, "e2", w.collectIn().ID)
	require.Equal(t, declared, w.declare("declared"))

	col := w.open("s1")
	_, err = w.EndExecution(ctx, owner, "", "e2", session.Interrupted)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"tool lives", "tool declared", "execution e2 INTERRUPTED"}, col.taken())
	e := w.execution(session.ExecutionSpec{})
	all, err := w.Executions(ctx, owner, "")
	require.NoError(t, err)
	require.Equal(t, e.ID, all[2].ID, "the order goes on")
}
