package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

// verbs are all methods that take a Caller, asked about session s1 with execution e1 and tool use t1.
func verbs(w *world, c session.Caller, sessionID string) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"Session":       func() error { _, err := w.Session(ctx, c, sessionID); return err },
		"Execution":     func() error { _, err := w.Execution(ctx, c, sessionID, "e1"); return err },
		"Executions":    func() error { _, err := w.Executions(ctx, c, sessionID); return err },
		"MarkExecution": func() error { _, err := w.MarkExecution(ctx, c, sessionID, "e1"); return err },
		"ToolUses":      func() error { _, err := w.ToolUses(ctx, c, sessionID); return err },
		"EndToolUse":    func() error { _, err := w.EndToolUse(ctx, c, sessionID, "t1"); return err },
		"BeginToolUse": func() error {
			_, err := w.BeginToolUse(ctx, c, session.ToolUseSpec{SessionID: sessionID, ID: "t1"})
			return err
		},
		"BeginToolUse 2": func() error {
			_, err := w.BeginToolUse(ctx, c, session.ToolUseSpec{SessionID: sessionID, ID: "t2", ExecutionID: "e1"})
			return err
		},
		"BeginExecution": func() error {
			_, err := w.BeginExecution(ctx, c, session.ExecutionSpec{SessionID: sessionID, ID: "e1"})
			return err
		},
		"BeginExecution 2": func() error {
			_, err := w.BeginExecution(ctx, c, session.ExecutionSpec{SessionID: sessionID, ParentID: "e1"})
			return err
		},
		"EndExecution": func() error { _, err := w.EndExecution(ctx, c, sessionID, "e1", session.Completed); return err },
	}
}

func TestStrangerSeesNothing(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	col := w.open("s1")
	w.execution(session.ExecutionSpec{ID: "e1"})
	w.toolUse(session.ToolUseSpec{ID: "t1"})

	unknown := session.Caller{UID: 4242}
	for _, sessionID := range []string{"s1", ""} {
		for name, verb := range verbs(w, stranger, sessionID) {
			err := verb()
			require.ErrorIs(t, err, session.ErrNotFound, name)
			require.NotContains(t, err.Error(), "1000", name)
			if sessionID == "s1" {
				require.Equal(t, verbs(w, unknown, "s1")[name]().Error(), err.Error(), name)
			}
		}
	}
	require.ErrorIs(t, w.DeleteSession(ctx, stranger, "s1"), session.ErrNotFound)
	all, err := w.Sessions(ctx, stranger)
	require.NoError(t, err)
	require.Empty(t, all)
	require.Empty(t, col.taken())
	require.True(t, w.ToolUseOpen("s1", "t1"))

	for _, c := range []session.Caller{owner, root} {
		all, err := w.Sessions(ctx, c)
		require.NoError(t, err)
		require.Len(t, all, 1)
	}
}

func TestSessionNotNamed(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	_, err := w.Session(ctx, owner, "")
	require.ErrorIs(t, err, session.ErrNotFound)
	w.open("s1")
	_, err = w.OpenSession(ctx, session.Session{ID: "theirs", Owner: 1001})
	require.NoError(t, err)
	s, err := w.Session(ctx, owner, "")
	require.NoError(t, err)
	require.Equal(t, "s1", s.ID)

	_, err = w.OpenSession(ctx, session.Session{ID: "s2", Owner: 1000})
	require.NoError(t, err)
	s, err = w.Session(ctx, owner, "")
	require.NoError(t, err)
	require.Equal(t, "s1", s.ID, "the one with a live mount is meant")

	require.NoError(t, w.AttachMount("s2", &collector{}))
	for name, verb := range verbs(w, owner, "") {
		switch name {
		case "Session", "Executions", "ToolUses", "BeginToolUse", "BeginExecution":
			err := verb()
			require.ErrorIs(t, err, session.ErrConflict, name)
			require.ErrorContains(t, err, "s1, s2")
			require.NotContains(t, err.Error(), "theirs")
		}
	}

	w.execution(session.ExecutionSpec{SessionID: "s2", ID: "e1"})
	w.toolUse(session.ToolUseSpec{ID: "t1", ExecutionID: "e1"})
	for _, name := range []string{"Execution", "MarkExecution", "BeginToolUse 2", "BeginExecution 2", "EndToolUse", "EndExecution"} {
		require.NoError(t, verbs(w, owner, "")[name](), name)
	}
}
