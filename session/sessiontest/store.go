// Package sessiontest is the conformance suite of session.Store. Every implementation runs all of
// it, from its own test:
//
//	sessiontest.Test(t, func(t *testing.T) session.Store { return open(t) })
package sessiontest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

// Test runs the suite. open returns a fresh, empty store for each case.
func Test(t *testing.T, open func(t *testing.T) session.Store) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s session.Store)
	}{
		{"missing", testMissing},
		{"every field comes back", testFields},
		{"put replaces", testReplace},
		{"lists in order of beginning", testOrder},
		{"open tool uses", testOpen},
		{"open executions", testOpenExecutions},
		{"sessions are apart", testApart},
		{"hostile ids", testHostileIDs},
		{"delete session", testDelete},
		{"delete a large session", testDeleteLarge},
		{"concurrent use", testConcurrent},
		{"sync", func(t *testing.T, s session.Store) { require.NoError(t, s.Sync()) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

func at(n int) time.Time { return epoch.Add(time.Duration(n) * time.Nanosecond) }

func execution(sessionID, id string, n int) session.Execution {
	return session.Execution{ID: id, SessionID: sessionID, Status: session.Running, BeganAt: at(n)}
}

func toolUse(sessionID, id string, n int) session.ToolUse {
	return session.ToolUse{ID: id, SessionID: sessionID, ExecutionID: "e1", Origin: session.OriginAPI, BeganAt: at(n)}
}

func put(t *testing.T, s session.Store, rows ...any) {
	t.Helper()
	for _, r := range rows {
		var err error
		switch r := r.(type) {
		case session.Session:
			err = s.PutSession(context.Background(), r)
		case session.Execution:
			err = s.PutExecution(context.Background(), r)
		case session.ToolUse:
			err = s.PutToolUse(context.Background(), r)
		}
		require.NoError(t, err)
	}
}

func executions(t *testing.T, s session.Store, sessionID string) []string {
	t.Helper()
	all, err := s.Executions(context.Background(), sessionID)
	require.NoError(t, err)
	ids := []string{}
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids
}

func toolUses(t *testing.T, s session.Store, sessionID string, openOnly bool) []string {
	t.Helper()
	all, err := s.ToolUses(context.Background(), sessionID, openOnly)
	require.NoError(t, err)
	ids := []string{}
	for _, u := range all {
		ids = append(ids, u.ID)
	}
	return ids
}

func sessions(t *testing.T, s session.Store) []string {
	t.Helper()
	all, err := s.Sessions(context.Background())
	require.NoError(t, err)
	ids := []string{}
	for _, v := range all {
		ids = append(ids, v.ID)
	}
	return ids
}

func testMissing(t *testing.T, s session.Store) {
	ctx := context.Background()
	_, err := s.Session(ctx, "s1")
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = s.Execution(ctx, "s1", "e1")
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = s.ToolUse(ctx, "s1", "t1")
	require.ErrorIs(t, err, session.ErrNotFound)
	require.ErrorIs(t, s.DeleteSession(ctx, "s1"), session.ErrNotFound)
	require.Empty(t, sessions(t, s))
	require.Empty(t, executions(t, s, "s1"))
	require.Empty(t, toolUses(t, s, "s1", false))
}

func testFields(t *testing.T, s session.Store) {
	ctx := context.Background()
	end, no := at(9), false
	want := session.Session{ID: "s1", Owner: 1<<32 - 1, Source: "/srv/caf\xe9 <&>\n", Artifacts: true, CreatedAt: at(0)}
	e := session.Execution{
		ID: "e1", SessionID: "s1", ParentID: "e0", Implicit: true, Artifacts: true,
		Status: session.MaxIterations, BeganAt: at(1), EndedAt: &end,
	}
	u := session.ToolUse{
		ID: "t \u2028 ü<1>", SessionID: "s1", ExecutionID: "e1", Origin: session.OriginEnvironment, Artifact: &no,
		Process: &session.Process{PID: 7, Start: 1<<64 - 1}, Cgroup: "/a/b", BeganAt: at(2), EndedAt: &end,
	}
	put(t, s, want, e, u)

	gotSession, err := s.Session(ctx, "s1")
	require.NoError(t, err)
	require.Equal(t, want, gotSession)
	gotExecution, err := s.Execution(ctx, "s1", "e1")
	require.NoError(t, err)
	require.Equal(t, e, gotExecution)
	gotToolUse, err := s.ToolUse(ctx, "s1", u.ID)
	require.NoError(t, err)
	require.Equal(t, u, gotToolUse)
}

func testReplace(t *testing.T, s session.Store) {
	ctx := context.Background()
	first := execution("s1", "e1", 5)
	changed := execution("s1", "e1", 1) // also its place in the order
	changed.Status = session.Completed
	put(t, s, first, execution("s1", "e2", 3), changed)
	require.Equal(t, []string{"e1", "e2"}, executions(t, s, "s1"))
	got, err := s.Execution(ctx, "s1", "e1")
	require.NoError(t, err)
	require.Equal(t, session.Completed, got.Status)
}

func testOrder(t *testing.T, s session.Store) {
	put(t, s,
		session.Session{ID: "b", CreatedAt: at(1)}, session.Session{ID: "a", CreatedAt: at(2)},
		session.Session{ID: "c", CreatedAt: epoch.Add(-100 * 365 * 24 * time.Hour)},
		execution("s1", "z", 1), execution("s1", "a", 3), execution("s1", "m", 2),
		toolUse("s1", "z", 1), toolUse("s1", "a", 3), toolUse("s1", "m", 2))
	require.Equal(t, []string{"c", "b", "a"}, sessions(t, s))
	require.Equal(t, []string{"z", "m", "a"}, executions(t, s, "s1"))
	require.Equal(t, []string{"z", "m", "a"}, toolUses(t, s, "s1", false))
}

func testOpen(t *testing.T, s session.Store) {
	put(t, s, toolUse("s1", "t1", 1), toolUse("s1", "t2", 2), toolUse("s1", "t3", 3))
	ended := toolUse("s1", "t2", 2)
	end := at(9)
	ended.EndedAt = &end
	put(t, s, ended)
	require.Equal(t, []string{"t1", "t3"}, toolUses(t, s, "s1", true))
	require.Equal(t, []string{"t1", "t2", "t3"}, toolUses(t, s, "s1", false))
}

func testOpenExecutions(t *testing.T, s session.Store) {
	open := func() (ids []string) {
		all, err := s.OpenExecutions(context.Background(), "s1")
		require.NoError(t, err)
		for _, e := range all {
			ids = append(ids, e.ID)
		}
		return ids
	}
	require.Empty(t, open())
	put(t, s, execution("s1", "e3", 3), execution("s1", "e1", 1), execution("s1", "e2", 2), execution("s2", "e4", 4))
	require.Equal(t, []string{"e1", "e2", "e3"}, open())
	ended := execution("s1", "e2", 2)
	ended.Status = session.Interrupted
	put(t, s, ended)
	require.Equal(t, []string{"e1", "e3"}, open())
	require.Equal(t, []string{"e1", "e2", "e3"}, executions(t, s, "s1"))
	put(t, s, execution("s1", "e2", 2))
	require.Equal(t, []string{"e1", "e2", "e3"}, open())
}

func testApart(t *testing.T, s session.Store) {
	put(t, s, execution("s1", "e1", 1), execution("s2", "e1", 2), execution("s2", "e2", 3), toolUse("s1", "t", 1), toolUse("s2", "t", 2))
	require.Equal(t, []string{"e1"}, executions(t, s, "s1"))
	require.Equal(t, []string{"e1", "e2"}, executions(t, s, "s2"))
	require.Equal(t, []string{"t"}, toolUses(t, s, "s1", true))
	_, err := s.Execution(context.Background(), "s1", "e2")
	require.ErrorIs(t, err, session.ErrNotFound)
}

// testHostileIDs has ids that would run into one another where keys are made by joining them.
func testHostileIDs(t *testing.T, s session.Store) {
	ids := []string{
		"a", "ab", "a/b", "a\x00b", "a\x00", "a:b", "\x01a", "\xc3\xbf", strings.Repeat("x", 254),
		strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("x", 65000), strings.Repeat("é", 128),
	}
	for i, id := range ids {
		put(t, s, session.Session{ID: id, CreatedAt: at(i)}, toolUse(id, "b", i), toolUse("s", id, i))
	}
	require.Equal(t, ids, sessions(t, s))
	require.Equal(t, ids, toolUses(t, s, "s", true))
	for _, id := range ids {
		require.Equal(t, []string{"b"}, toolUses(t, s, id, true))
		got, err := s.ToolUse(context.Background(), "s", id)
		require.NoError(t, err)
		require.Equal(t, id, got.ID)
	}
	require.NoError(t, s.DeleteSession(context.Background(), "a"))
	require.Equal(t, ids[1:], sessions(t, s))
	require.Equal(t, []string{"b"}, toolUses(t, s, "ab", true))
}

func testDelete(t *testing.T, s session.Store) {
	ctx := context.Background()
	put(t, s, session.Session{ID: "s1"}, session.Session{ID: "s2"},
		execution("s1", "e1", 1), execution("s2", "e1", 1), toolUse("s1", "t1", 1), toolUse("s2", "t1", 1))
	require.NoError(t, s.DeleteSession(ctx, "s1"))
	require.Equal(t, []string{"s2"}, sessions(t, s))
	require.Empty(t, executions(t, s, "s1"))
	require.Empty(t, toolUses(t, s, "s1", false))
	_, err := s.ToolUse(ctx, "s1", "t1")
	require.ErrorIs(t, err, session.ErrNotFound)
	require.Equal(t, []string{"e1"}, executions(t, s, "s2"))
	require.Equal(t, []string{"t1"}, toolUses(t, s, "s2", true))
	require.ErrorIs(t, s.DeleteSession(ctx, "s1"), session.ErrNotFound)
}

func testDeleteLarge(t *testing.T, s session.Store) {
	put(t, s, session.Session{ID: "s1"})
	for n := range 500 {
		put(t, s, execution("s1", fmt.Sprint("e", n), n), toolUse("s1", fmt.Sprint("t", n), n))
	}
	require.NoError(t, s.DeleteSession(context.Background(), "s1"))
	require.Empty(t, executions(t, s, "s1"))
	require.Empty(t, toolUses(t, s, "s1", false))
}

func testConcurrent(t *testing.T, s session.Store) {
	ctx := context.Background()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 25 {
				u := toolUse("s1", fmt.Sprintf("t%d-%d", w, n), n)
				if err := s.PutToolUse(ctx, u); err != nil {
					t.Error(err)
				}
				u.EndedAt = &epoch
				if err := s.PutToolUse(ctx, u); err != nil {
					t.Error(err)
				}
				if _, err := s.ToolUses(ctx, "s1", true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, toolUses(t, s, "s1", false), 100)
	require.Empty(t, toolUses(t, s, "s1", true))
}
