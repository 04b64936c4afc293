package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestWasOpen(t *testing.T) {
	w := newWorld(t)
	w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	u := w.toolUse(session.ToolUseSpec{ID: "t1"})
	w.declare("declared")
	long := time.Hour
	ask := func(from, to time.Time) []string { return ids(w.WasOpen("s1", from, to), toolUseID) }
	require.Empty(t, ask(u.BeganAt.Add(-long), u.BeganAt.Add(long)), "it is open")
	ended, err := w.EndToolUse(context.Background(), owner, "", "t1")
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, []string{"t1"}, ask(u.BeganAt.Add(-long), u.BeganAt))
		require.Equal(t, []string{"t1"}, ask(*ended.EndedAt, ended.EndedAt.Add(long)))
		require.Empty(t, ask(u.BeganAt.Add(-long), u.BeganAt.Add(-1)))
		require.Empty(t, ask(ended.EndedAt.Add(1), ended.EndedAt.Add(long)))
		require.Empty(t, w.WasOpen("s2", u.BeganAt, u.BeganAt))
		w.restart()
		w.open("s1")
	}
}
