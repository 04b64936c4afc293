package session_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestEnterIsForTheIDOnly(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	w.processes.start(100, 7)
	w.toolUse(session.ToolUseSpec{ID: "open"})
	w.toolUse(session.ToolUseSpec{ID: "ended"})
	_, err := w.EndToolUse(context.Background(), owner, "", "ended")
	require.NoError(t, err)
	w.declare("declared")
	for _, c := range []struct {
		name   string
		spec   session.ToolUseSpec
		fails  error
		cgroup string
		want   error
	}{
		{name: "open id", spec: session.ToolUseSpec{ID: "open"}, want: session.ErrConflict},
		{name: "ended id", spec: session.ToolUseSpec{ID: "ended"}, want: session.ErrConflict},
		{name: "unknown execution", spec: session.ToolUseSpec{SessionID: "s1", ID: "x", ExecutionID: "e9"}, want: session.ErrNotFound},
		{name: "unknown execution of a declared one", spec: session.ToolUseSpec{SessionID: "s1", ID: "declared", ExecutionID: "e9"}, want: session.ErrNotFound},
		{name: "another's process", spec: session.ToolUseSpec{ID: "x", PID: 999}, want: session.ErrNotFound},
		{name: "free id", spec: session.ToolUseSpec{ID: "free"}, cgroup: "/free"},
		{name: "declared id", spec: session.ToolUseSpec{ID: "declared"}, cgroup: "/declared"},
		{name: "no cgroup", spec: session.ToolUseSpec{ID: "none"}, fails: errors.New("unavailable")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.spec.PID == 0 {
				c.spec.PID = 100
			}
			called := false
			c.spec.Enter = func(_ context.Context, sessionID string) (string, error) {
				called = true
				require.Equal(t, "s1", sessionID)
				return "/" + c.spec.ID, c.fails
			}
			u, err := w.BeginToolUse(context.Background(), owner, c.spec)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.want == nil, called, "a begin that is refused moves nobody")
			require.Equal(t, c.cgroup, u.Cgroup)
			if c.cgroup != "" {
				of, ok := w.ByCgroup(c.cgroup)
				require.True(t, ok)
				require.Equal(t, u, of)
				stored, err := w.store.ToolUse(context.Background(), "s1", u.ID)
				require.NoError(t, err)
				require.Equal(t, u, stored)
			}
		})
	}
}

func TestOneOfManyBeginsEnters(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	var entered, begun atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := w.BeginToolUse(context.Background(), owner, session.ToolUseSpec{ID: "t", Enter: func(context.Context, string) (string, error) {
				entered.Add(1)
				return "/t", nil
			}})
			if err == nil {
				begun.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, entered.Load())
	require.EqualValues(t, 1, begun.Load())
}
