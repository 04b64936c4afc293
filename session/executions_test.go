package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestBeginExecution(t *testing.T) {
	no := false
	for _, c := range []struct {
		name string
		spec session.ExecutionSpec
		want error
	}{
		{"new id", session.ExecutionSpec{}, nil},
		{"given id", session.ExecutionSpec{ID: "e.1:a-b"}, nil},
		{"artifacts off", session.ExecutionSpec{ID: "e1", Artifacts: &no}, nil},
		{"fork", session.ExecutionSpec{ParentID: "open"}, nil},
		{"open id", session.ExecutionSpec{ID: "open"}, session.ErrConflict},
		{"ended id", session.ExecutionSpec{ID: "ended"}, session.ErrConflict},
		{"bad id", session.ExecutionSpec{ID: "a/b"}, session.ErrInvalid},
		{"bad parent", session.ExecutionSpec{ParentID: "../x"}, session.ErrInvalid},
		{"unknown parent", session.ExecutionSpec{SessionID: "s1", ParentID: "nobody"}, session.ErrConflict},
		{"unknown parent, no session", session.ExecutionSpec{ParentID: "nobody"}, session.ErrNotFound},
		{"ended parent", session.ExecutionSpec{ParentID: "ended"}, session.ErrConflict},
		{"own parent", session.ExecutionSpec{SessionID: "s1", ID: "x", ParentID: "x"}, session.ErrConflict},
		{"unknown session", session.ExecutionSpec{SessionID: "s9"}, session.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.open("s1")
			w.execution(session.ExecutionSpec{ID: "open"})
			w.execution(session.ExecutionSpec{ID: "ended"})
			_, err := w.EndExecution(context.Background(), owner, "s1", "ended", session.Completed)
			require.NoError(t, err)

			e, err := w.BeginExecution(context.Background(), owner, c.spec)
			require.ErrorIs(t, err, c.want)
			if c.want != nil {
				return
			}
			require.NoError(t, session.CheckID("execution", e.ID))
			require.Equal(t, session.Running, e.Status)
			require.Equal(t, c.spec.Artifacts == nil, e.Artifacts)
			stored, err := w.store.Execution(context.Background(), "s1", e.ID)
			require.NoError(t, err)
			require.Equal(t, e, stored)
		})
	}
}

func TestCurrentExecution(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	implicit := w.collectIn()
	require.True(t, implicit.Implicit)
	require.True(t, implicit.Artifacts)
	require.Equal(t, implicit, w.collectIn(), "there is one")

	first := w.execution(session.ExecutionSpec{})
	require.Equal(t, []string{"execution " + implicit.ID + " COMPLETED"}, col.taken())
	require.Equal(t, first.ID, w.collectIn().ID)

	second := w.execution(session.ExecutionSpec{})
	w.execution(session.ExecutionSpec{ParentID: second.ID})
	require.Equal(t, second.ID, w.collectIn().ID, "a fork is not current")

	_, err := w.EndExecution(ctx, owner, "", second.ID, session.Error)
	require.NoError(t, err)
	require.Equal(t, first.ID, w.collectIn().ID)
	_, err = w.EndExecution(ctx, owner, "", first.ID, session.Completed)
	require.NoError(t, err)
	again := w.collectIn()
	require.True(t, again.Implicit)
	require.NotEqual(t, implicit.ID, again.ID)

	fork := w.execution(session.ExecutionSpec{ParentID: again.ID})
	require.Equal(t, again.ID, w.collectIn().ID, "a fork leaves its implicit parent open")
	require.Equal(t, []string{fork.ID}, w.Forks("s1", again.ID))
}

func TestCollectIn(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	w.open("s2")
	registry := w.Registry()
	for _, id := range []string{"e1", "e2", "ended"} {
		w.execution(session.ExecutionSpec{SessionID: "s1", ID: id})
	}
	w.execution(session.ExecutionSpec{SessionID: "s2", ID: "other"})
	_, err := w.EndExecution(context.Background(), owner, "s1", "ended", session.Suspended)
	require.NoError(t, err)
	in := func(sessionID, executionID string) *session.ToolUse {
		return &session.ToolUse{ID: "t", SessionID: sessionID, ExecutionID: executionID}
	}
	for _, c := range []struct {
		name, declared string
		toolUse        *session.ToolUse
		want           string
	}{
		{"the declared one", "e1", in("s1", "e2"), "e1"},
		{"an ended declared one does not count", "ended", in("s1", "e1"), "e1"},
		{"one of another session does not count", "other", nil, "e2"},
		{"the tool use's", "", in("s1", "e1"), "e1"},
		{"the tool use's, ended", "", in("s1", "ended"), "ended"},
		{"a tool use of another session", "", in("s2", "other"), "e2"},
		{"the current one", "", nil, "e2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := registry.Execution("s1", c.declared, c.toolUse)
			require.NoError(t, err)
			require.Equal(t, c.want, e.ID)
		})
	}
	_, err = registry.Execution("s9", "", nil)
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestEndExecution(t *testing.T) {
	ctx := context.Background()
	for _, status := range []session.Status{
		session.Completed, session.Truncated, session.Error, session.Interrupted,
		session.Suspended, session.MaxIterations, session.Command,
	} {
		t.Run(string(status), func(t *testing.T) {
			w := newWorld(t)
			col := w.open("s1")
			w.execution(session.ExecutionSpec{ID: "e1"})
			w.toolUse(session.ToolUseSpec{ID: "t1"})
			fork := w.execution(session.ExecutionSpec{ID: "fork", ParentID: "e1"})
			w.toolUse(session.ToolUseSpec{ID: "t2", ExecutionID: "fork"})

			e, err := w.EndExecution(ctx, owner, "", "e1", status)
			require.NoError(t, err)
			require.Equal(t, status, e.Status)
			require.Equal(t, []string{"tool t1", "execution e1 " + string(status)}, col.taken())
			require.False(t, w.ToolUseOpen("s1", "t1"))
			require.True(t, w.ToolUseOpen("s1", "t2"), "forks go on")

			stored, err := w.store.Execution(ctx, "s1", "e1")
			require.NoError(t, err)
			require.Equal(t, e, stored)
			again, err := w.EndExecution(ctx, owner, "", "e1", status)
			require.NoError(t, err)
			require.Equal(t, e, again)
			require.Empty(t, col.taken())

			_, err = w.BeginToolUse(ctx, owner, session.ToolUseSpec{ID: "t3", ExecutionID: "e1"})
			require.ErrorIs(t, err, session.ErrConflict)
			_, err = w.BeginExecution(ctx, owner, session.ExecutionSpec{ParentID: "e1"})
			require.ErrorIs(t, err, session.ErrConflict)
			got, err := w.Execution(ctx, owner, "", fork.ID)
			require.NoError(t, err)
			require.Equal(t, session.Running, got.Status)
		})
	}
}

func TestEndExecutionRefuses(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	for _, s := range []session.Status{"", "completed", session.Running, "DONE"} {
		_, err := w.EndExecution(ctx, owner, "", "e1", s)
		require.ErrorIs(t, err, session.ErrInvalid, s)
	}
	_, err := w.EndExecution(ctx, owner, "s1", "nobody", session.Completed)
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = w.EndExecution(ctx, owner, "", "e1", session.Completed)
	require.NoError(t, err)
	_, err = w.EndExecution(ctx, owner, "", "e1", session.Error)
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestEndExecutionGoesOnWhereItFailed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.toolUse(session.ToolUseSpec{ID: "t1"})
	col.setFail(errCollector)
	_, err := w.EndExecution(ctx, owner, "", "e1", session.Completed)
	require.ErrorIs(t, err, errCollector)
	require.False(t, w.ToolUseOpen("s1", "t1"), "writes are late from the first try on")
	_, err = w.EndExecution(ctx, owner, "", "e1", session.Error)
	require.ErrorIs(t, err, session.ErrConflict)

	col.setFail(nil)
	col.taken()
	_, err = w.EndExecution(ctx, owner, "", "e1", session.Completed)
	require.NoError(t, err)
	require.Equal(t, []string{"tool t1", "execution e1 COMPLETED"}, col.taken())
}

func TestMarkExecution(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	for want := uint64(1); want <= 2; want++ {
		mark, err := w.MarkExecution(ctx, owner, "", "e1")
		require.NoError(t, err)
		require.Equal(t, want, mark)
	}
	_, err := w.MarkExecution(ctx, owner, "s1", "nobody")
	require.ErrorIs(t, err, session.ErrNotFound)
	w.DetachMount("s1")
	_, err = w.MarkExecution(ctx, owner, "", "e1")
	require.ErrorIs(t, err, session.ErrConflict)
	require.ErrorContains(t, err, "no live mount")
}

func TestForks(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.execution(session.ExecutionSpec{ID: "a", ParentID: "e1"})
	w.execution(session.ExecutionSpec{ID: "b", ParentID: "a"})
	w.execution(session.ExecutionSpec{ID: "c", ParentID: "e1"})
	_, err := w.EndExecution(context.Background(), owner, "", "a", session.Completed)
	require.NoError(t, err)
	for range 2 {
		require.ElementsMatch(t, []string{"a", "b", "c"}, w.Forks("s1", "e1"))
		require.Equal(t, []string{"b"}, w.Forks("s1", "a"))
		require.Empty(t, w.Forks("s1", "b"))
		require.Empty(t, w.Forks("s9", "e1"))
		e, ok := w.ExecutionOf("s1", "a")
		require.True(t, ok)
		require.Equal(t, session.Completed, e.Status)
		_, ok = w.ExecutionOf("s1", "nobody")
		require.False(t, ok)
		w.restart()
	}
}

func TestTheEndOfTheImplicitExecutionIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	col := w.open("s1")
	implicit := w.collectIn()
	col.setFail(errCollector)
	w.execution(session.ExecutionSpec{ID: "e1"})
	col.setFail(nil)
	w.execution(session.ExecutionSpec{ID: "e2"})
	stored, err := w.store.Execution(context.Background(), "s1", implicit.ID)
	require.NoError(t, err)
	require.Equal(t, session.Completed, stored.Status)
	col.taken()
	w.execution(session.ExecutionSpec{ID: "e3"})
	require.Empty(t, col.taken(), "once is enough")
}
