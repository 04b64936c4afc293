package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestBeginToolUse(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name string
		spec session.ToolUseSpec
		want error
	}{
		{"in the current execution", session.ToolUseSpec{ID: "t"}, nil},
		{"any text", session.ToolUseSpec{ID: "../ü $(x) \"'"}, nil},
		{"in an execution", session.ToolUseSpec{ID: "t", ExecutionID: "e1"}, nil},
		{"with a process", session.ToolUseSpec{ID: "t", PID: 100, Artifact: &yes}, nil},
		{"with a cgroup", session.ToolUseSpec{ID: "t", Cgroup: "/new"}, nil},
		{"open id", session.ToolUseSpec{ID: "open"}, session.ErrConflict},
		{"ended id", session.ToolUseSpec{ID: "ended"}, session.ErrConflict},
		{"no id", session.ToolUseSpec{}, session.ErrInvalid},
		{"long id", session.ToolUseSpec{ID: strings.Repeat("x", 257)}, session.ErrInvalid},
		{"bytes", session.ToolUseSpec{ID: "\xff"}, session.ErrInvalid},
		{"negative pid", session.ToolUseSpec{ID: "t", PID: -1}, session.ErrInvalid},
		{"no such process", session.ToolUseSpec{ID: "t", PID: 999}, session.ErrNotFound},
		{"another's process", session.ToolUseSpec{ID: "t", PID: 5}, session.ErrNotFound},
		{"another's cgroup", session.ToolUseSpec{ID: "t", Cgroup: "/taken"}, session.ErrConflict},
		{"unknown execution", session.ToolUseSpec{SessionID: "s1", ID: "t", ExecutionID: "e9"}, session.ErrNotFound},
		{"bad execution", session.ToolUseSpec{ID: "t", ExecutionID: "e/9"}, session.ErrInvalid},
		{"unknown session", session.ToolUseSpec{SessionID: "s9", ID: "t"}, session.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			w := newWorld(t)
			w.open("s1")
			w.processes.start(100, 7)
			w.processes.start(5, 7)
			w.execution(session.ExecutionSpec{ID: "e1"})
			w.execution(session.ExecutionSpec{ID: "e2"})
			w.toolUse(session.ToolUseSpec{ID: "open", Cgroup: "/taken"})
			w.toolUse(session.ToolUseSpec{ID: "ended"})
			_, err := w.EndToolUse(ctx, owner, "", "ended")
			require.NoError(t, err)

			u, err := w.BeginToolUse(ctx, owner, c.spec)
			require.ErrorIs(t, err, c.want)
			if c.want != nil {
				require.False(t, w.ToolUseOpen("s1", "t"))
				return
			}
			stored, err := w.store.ToolUse(ctx, "s1", u.ID)
			require.NoError(t, err)
			require.Equal(t, u, stored)
			require.True(t, w.ToolUseOpen("s1", u.ID))
			require.Equal(t, []string{"open", u.ID}, w.Window("s1"))
			if c.spec.ExecutionID == "" {
				require.Equal(t, "e2", u.ExecutionID)
			}
		})
	}
}

func TestEndToolUse(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	w.toolUse(session.ToolUseSpec{ID: "t1"})
	col.see = func(u session.ToolUse) {
		require.False(t, w.ToolUseOpen("s1", u.ID), "ended before it is collected")
		require.Empty(t, w.Window("s1"))
		stored, err := w.store.ToolUse(ctx, "s1", u.ID)
		require.NoError(t, err)
		require.True(t, stored.Open(), "on disk it ends when it is collected")
	}
	syncs := w.store.Syncs()
	u, err := w.EndToolUse(ctx, owner, "", "t1")
	require.NoError(t, err)
	require.NotNil(t, u.EndedAt)
	require.Equal(t, []string{"tool t1"}, col.taken())
	require.Greater(t, w.store.Syncs(), syncs)
	stored, err := w.store.ToolUse(ctx, "s1", "t1")
	require.NoError(t, err)
	require.Equal(t, u, stored)

	again, err := w.EndToolUse(ctx, owner, "", "t1")
	require.NoError(t, err)
	require.Equal(t, u, again)
	require.Empty(t, col.taken())
	_, err = w.EndToolUse(ctx, owner, "", "nobody")
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = w.EndToolUse(ctx, owner, "s1", "nobody")
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestEndToolUseGoesOnWhereItFailed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	w.toolUse(session.ToolUseSpec{ID: "t1"})
	col.setFail(errCollector)
	first, err := w.EndToolUse(ctx, owner, "", "t1")
	require.ErrorIs(t, err, errCollector)
	col.setFail(nil)
	u, err := w.EndToolUse(ctx, owner, "", "t1")
	require.NoError(t, err)
	require.Equal(t, first.EndedAt, u.EndedAt)
	_, err = w.BeginToolUse(ctx, owner, session.ToolUseSpec{ID: "t1"})
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestEndIsCarriedThroughWithoutItsCaller(t *testing.T) {
	w := newWorld(t)
	col := w.open("s1")
	w.toolUse(session.ToolUseSpec{ID: "t1"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.EndToolUse(ctx, owner, "s1", "t1")
	require.NoError(t, err)
	require.Equal(t, []string{"tool t1"}, col.taken())
}

func TestDeclared(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.execution(session.ExecutionSpec{ID: "e2"})
	no := false
	u, err := w.Declared("s1", session.Declaration{ToolUseID: "t1", ExecutionID: "e1", Artifact: &no, Process: session.Process{PID: 100, Start: 7}})
	require.NoError(t, err)
	require.Equal(t, session.OriginEnvironment, u.Origin)
	require.Equal(t, "e1", u.ExecutionID)
	require.Equal(t, &no, u.Artifact)
	require.Empty(t, w.Window("s1"), "it does not count for the window")
	require.Empty(t, w.ByProcess(100), "a declaration binds no process")
	stored, err := w.store.ToolUse(ctx, "s1", "t1")
	require.NoError(t, err)
	require.Equal(t, u, stored)
	require.Equal(t, u, w.declare("t1"))

	require.NoError(t, w.DeclaredGone("s1", "t1"))
	require.Equal(t, []string{"tool t1"}, col.taken())
	require.NoError(t, w.DeclaredGone("s1", "t1"))
	ended := w.declare("t1")
	require.False(t, ended.Open(), "it is never begun again")
	w.restart()
	require.Equal(t, ended, w.declare("t1"))

	_, err = w.Declared("s1", session.Declaration{ToolUseID: "\n"})
	require.ErrorIs(t, err, session.ErrInvalid)
	_, err = w.Declared("s9", session.Declaration{ToolUseID: "t"})
	require.ErrorIs(t, err, session.ErrNotFound)
	require.ErrorIs(t, w.DeclaredGone("s1", "nobody"), session.ErrNotFound)
}

func TestDeclaredExecution(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	for i, declared := range []string{"", "nobody", "e1"} {
		u, err := w.Declared("s1", session.Declaration{ToolUseID: fmt.Sprint(i), ExecutionID: declared})
		require.NoError(t, err)
		require.Equal(t, "e1", u.ExecutionID)
	}
	_, err := w.EndExecution(context.Background(), owner, "", "e1", session.Completed)
	require.NoError(t, err)
	for i := range 3 {
		require.False(t, w.declare(fmt.Sprint(i)).Open())
	}
	executions, err := w.Executions(context.Background(), owner, "")
	require.NoError(t, err)
	require.Len(t, executions, 1, "ended ids begin no implicit execution")
}

func TestDeclaredIsCapped(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	for n := range 10_000 {
		w.declare(fmt.Sprint(n))
	}
	_, err := w.Declared("s1", session.Declaration{ToolUseID: "more"})
	require.ErrorIs(t, err, session.ErrConflict)
	require.True(t, w.declare("5").Open(), "a known one is known")
	w.toolUse(session.ToolUseSpec{ID: "more"})
	require.NoError(t, w.DeclaredGone("s1", "5"))
	require.True(t, w.declare("now").Open())
}

func TestDeclaredIsAdopted(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.execution(session.ExecutionSpec{ID: "e2"})
	declared := w.declare("t1")
	u := w.toolUse(session.ToolUseSpec{ID: "t1", ExecutionID: "e1", PID: 100, Cgroup: "/c"})
	require.Equal(t, session.OriginAPI, u.Origin)
	require.Equal(t, declared.BeganAt, u.BeganAt)
	require.Equal(t, "e1", u.ExecutionID)
	require.Equal(t, []string{"t1"}, w.Window("s1"))
	require.Len(t, w.ByProcess(100), 1)
	stored, err := w.store.ToolUse(ctx, "s1", "t1")
	require.NoError(t, err)
	require.Equal(t, u, stored)

	require.NoError(t, w.DeclaredGone("s1", "t1"))
	require.True(t, w.ToolUseOpen("s1", "t1"), "it is the API's to end")
	_, err = w.BeginToolUse(ctx, owner, session.ToolUseSpec{ID: "t1"})
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestBindings(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	for _, id := range []string{"t1", "t2"} {
		w.toolUse(session.ToolUseSpec{ID: id, PID: 100, Cgroup: "/" + id})
		_, err := w.EndToolUse(ctx, owner, "", id)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"t1", "t2"}, ids(w.ByProcess(100), toolUseID), "intervals")
	u, ok := w.ByCgroup("/t1")
	require.True(t, ok)
	require.False(t, u.Open())
	w.ForgetCgroup("/t1")
	_, ok = w.ByCgroup("/t1")
	require.False(t, ok)
	_, ok = w.ByCgroup("/t2")
	require.True(t, ok)

	w.processes.start(100, 8)
	w.toolUse(session.ToolUseSpec{ID: "t3", PID: 100})
	require.Equal(t, []string{"t3"}, ids(w.ByProcess(100), toolUseID), "the pid is another process now")
	require.Empty(t, w.ByProcess(101))
}

func TestBindingsAreBounded(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	for n := range 2000 {
		pid := 1000 + n
		w.processes.start(pid, uint64(n))
		w.toolUse(session.ToolUseSpec{ID: fmt.Sprint(n), PID: pid})
		_, err := w.EndToolUse(ctx, owner, "", fmt.Sprint(n))
		require.NoError(t, err)
		w.processes.end(pid)
	}
	known := 0
	for n := range 2000 {
		known += len(w.ByProcess(1000 + n))
	}
	require.LessOrEqual(t, known, 1025)
}

func TestBindingsOfEndedComeBack(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	w.processes.start(101, 7)
	for _, s := range []session.ToolUseSpec{{ID: "t1", PID: 100, Cgroup: "/t1"}, {ID: "t2", PID: 101}} {
		w.toolUse(s)
		_, err := w.EndToolUse(ctx, owner, "", s.ID)
		require.NoError(t, err)
	}
	w.toolUse(session.ToolUseSpec{ID: "t3", PID: 100})
	w.processes.end(101)
	w.restart()
	w.open("s1")
	require.Equal(t, []string{"t1", "t3"}, ids(w.ByProcess(100), toolUseID))
	require.Empty(t, w.ByProcess(101))
	u, ok := w.ByCgroup("/t1")
	require.True(t, ok)
	require.False(t, u.Open())
}
