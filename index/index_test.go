package index

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/artifact/artifacttest"
	"aimon.at/vfsd/session"
	"aimon.at/vfsd/session/sessiontest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open returns an index in dir that is closed at the end of the test.
func open(t *testing.T, dir string) *Index {
	t.Helper()
	x, err := Open(dir, quiet())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// fresh returns an empty index that is checked at the end of the test, references apart where the
// test does not put what its rows refer to.
func fresh(t *testing.T, expected ...string) *Index {
	t.Helper()
	x := open(t, t.TempDir())
	t.Cleanup(func() { requireSound(t, x, expected...) })
	return x
}

// The suites put rows without their sessions, executions and tool uses.
var orphans = []string{"which is missing", "a session that is missing"}

func TestSessionStore(t *testing.T) {
	sessiontest.Test(t, func(t *testing.T) session.Store { return fresh(t, orphans...) })
}

func TestArtifactStore(t *testing.T) {
	artifacttest.Test(t, func(t *testing.T) artifact.Store { return fresh(t, orphans...) })
}

func TestTokenStore(t *testing.T) {
	artifacttest.TestTokens(t, func(t *testing.T) artifact.TokenStore { return fresh(t, orphans...) })
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// seed puts session s1 with execution e1 and tool use t1.
func seed(t *testing.T, x *Index) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, x.PutSession(ctx, session.Session{ID: "s1", CreatedAt: began}))
	require.NoError(t, x.PutExecution(ctx, session.Execution{ID: "e1", SessionID: "s1", Status: session.Running, BeganAt: began}))
	require.NoError(t, x.PutToolUse(ctx, session.ToolUse{ID: "t1", SessionID: "s1", ExecutionID: "e1", Origin: session.OriginAPI, BeganAt: began}))
}
