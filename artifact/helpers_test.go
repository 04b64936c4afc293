package artifact_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/artifact/artifacttest"
	"aimon.at/vfsd/artifact/memstore"
	"aimon.at/vfsd/session"
)

// bench is a recorder over a tree, a store and sessions in memory: execution e1 with artifacts on,
// tool uses A and B in it.
type bench struct {
	t        require.TestingT
	tree     *artifacttest.Tree
	store    *memstore.Store
	sessions *artifacttest.Sessions
	recorder *artifact.Recorder
	library  *artifact.Library
	e1       session.Execution
}

type testing2 interface {
	require.TestingT
	Cleanup(func())
}

func newBench(t testing2) *bench {
	b := &bench{t: t, tree: artifacttest.NewTree(), store: memstore.New(), sessions: &artifacttest.Sessions{}}
	b.e1 = b.sessions.Begin("e1", "", true)
	b.sessions.BeginTool("A", "e1")
	b.sessions.BeginTool("B", "e1")
	b.library = artifact.NewLibrary(b.store, b.sessions, nil, slog.New(slog.DiscardHandler))
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *bench) start() {
	r, err := artifact.NewRecorder(context.Background(), artifact.RecorderConfig{
		SessionID: "s1", Store: b.store, Tree: b.tree, Sessions: b.sessions, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	b.recorder = r
	r.SetHandles(b.tree)
	b.tree.Report(r.Record)
	b.library.Attach("s1", r, b.tree)
}

func (b *bench) stop() {
	b.library.Detach("s1")
	b.tree.Report(nil)
	require.NoError(b.t, b.recorder.Close(context.Background()))
}

func (b *bench) restart() {
	b.stop()
	b.start()
}

func (b *bench) end(toolUse string) {
	require.NoError(b.t, b.recorder.FinishToolUse(context.Background(), b.sessions.EndTool(toolUse)))
}

func (b *bench) mark() uint64 {
	m, err := b.recorder.Mark(context.Background(), b.e1)
	require.NoError(b.t, err)
	return m
}

func (b *bench) list(q artifact.ListQuery) []artifact.View {
	q.SessionID = "s1"
	l, err := b.library.List(context.Background(), q)
	require.NoError(b.t, err)
	return l.Views
}

// paths lists "path toolUse state" of everything that is listed.
func (b *bench) paths(q artifact.ListQuery) []string {
	out := []string{}
	for _, v := range b.list(q) {
		out = append(out, v.Path()+" "+v.Who.ToolUseID+" "+string(v.State))
	}
	return out
}

func by(toolUse string) session.Attribution {
	return session.Attribution{Sureness: session.Exact, Source: session.SourceCgroup, ToolUseID: toolUse, ExecutionID: "e1"}
}

func byNobody() session.Attribution {
	return session.Attribution{Sureness: session.None, ExecutionID: "e1"}
}

func late(who session.Attribution) session.Attribution {
	who.Late = true
	return who
}

var _ testing2 = (*testing.T)(nil)
