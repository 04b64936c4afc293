package artifact_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

func TestListing(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/kept", "1", by("A"))
	b.tree.Write("/script.py", "1", by("A"))
	b.tree.Write("/deleted", "1", by("A"))
	b.tree.Write("/replaced", "1", by("A"))
	b.tree.Write("/removed", "1", by("A"))
	b.end("A")
	for _, v := range b.list(all) {
		if v.Path() == "/removed" {
			removed, err := b.library.Remove(context.Background(), v.ID)
			require.NoError(t, err)
			require.True(t, removed.Removed)
		}
	}
	b.tree.Unlink("/deleted")
	b.tree.Write("/replaced", "2", by("B"))

	require.Equal(t, []string{"/kept A live", "/replaced B live"}, b.paths(artifact.ListQuery{}))
	require.Equal(t, []string{"/kept A live", "/deleted A deleted", "/replaced A replaced", "/removed A live", "/replaced B live"}, b.paths(all))
	require.Len(t, b.list(artifact.ListQuery{Writes: true}), 6)
	require.Equal(t, []string{"/replaced B live"}, b.paths(artifact.ListQuery{ToolUseID: "B"}))
	require.Empty(t, b.paths(artifact.ListQuery{ExecutionID: "e9"}))
}

func TestListingInPages(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"/a", "/b.py", "/c", "/d", "/e"} {
		b.tree.Write(name, "1", by("A"))
	}
	b.end("A")
	b.tree.Write("/open", "1", by("B"))
	var got []string
	q := artifact.ListQuery{SessionID: "s1", Limit: 2}
	for pages := 1; ; pages++ {
		l, err := b.library.List(context.Background(), q)
		require.NoError(t, err)
		for _, v := range l.Views {
			got = append(got, v.Path())
		}
		if l.NextFrom == 0 {
			require.Equal(t, 2, pages)
			break
		}
		q.From = l.NextFrom
	}
	require.Equal(t, []string{"/a", "/c", "/d", "/e", "/open"}, got)
}

func TestContent(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.tree.Write("/a.txt", "hello", by("A"))
	b.end("A")
	id := b.list(all)[0].ID

	c, err := b.library.Open(ctx, id)
	require.NoError(t, err)
	defer c.Close()
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.Equal(t, int64(5), c.Size())
	require.Equal(t, c.Stamp().Mtime, c.ModTime().UnixNano())
	require.NoError(t, c.Verify())

	b.tree.Chmod("/a.txt")
	require.NoError(t, c.Verify(), "attributes are no content")
	b.tree.Write("/a.txt", "HELLO", by("B"))
	require.ErrorIs(t, c.Verify(), artifact.ErrGone)
	_, err = b.library.Open(ctx, id)
	require.ErrorIs(t, err, artifact.ErrGone)
	require.ErrorContains(t, err, "replaced")

	b.tree.Unlink("/a.txt")
	_, err = b.library.Open(ctx, id)
	require.ErrorIs(t, err, artifact.ErrGone)
	require.ErrorContains(t, err, "deleted")
	_, err = b.library.Open(ctx, "nothing")
	require.ErrorIs(t, err, session.ErrNotFound)
}

// A change of attributes is followed; one that a write may hide behind is not.
func TestContentOfATouchedFile(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		touch func(b *bench, s change.Stamp)
		live  bool
	}{
		{"chmod", func(b *bench, _ change.Stamp) { b.tree.Chmod("/a") }, true},
		{"setfattr", func(b *bench, _ change.Stamp) { require.NoError(t, b.tree.SetIntent("/a", []byte("yes"))) }, true},
		{"link and unlink", func(b *bench, _ change.Stamp) { b.tree.Link("/a", "/b", by("B")); b.tree.Unlink("/b") }, true},
		{"utimes to the same time", func(b *bench, s change.Stamp) { b.tree.Utimes("/a", s.Mtime) }, true},
		{"utimes", func(b *bench, s change.Stamp) { b.tree.Utimes("/a", s.Mtime-1) }, false},
		{"utimes and back", func(b *bench, s change.Stamp) {
			b.tree.Utimes("/a", s.Mtime-1)
			b.tree.Utimes("/a", s.Mtime)
		}, false},
		{"a write that is not seen, and utimes back", func(b *bench, s change.Stamp) {
			b.tree.Behind(func() { b.tree.Write("/a", "2", by("B")) })
			b.tree.Utimes("/a", s.Mtime)
			b.tree.Chmod("/a")
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.tree.Write("/a", "1", by("A"))
			b.end("A")
			v := b.list(all)[0]
			c.touch(b, v.Stamp)
			got, err := b.library.Open(ctx, v.ID)
			if !c.live {
				require.ErrorIs(t, err, artifact.ErrGone)
				return
			}
			require.NoError(t, err)
			require.NoError(t, got.Close())
		})
	}
}

func TestContentOfAnOpenEntry(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	c, err := b.library.Open(context.Background(), b.list(all)[0].ID)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Verify())
	b.tree.Write("/a", "2", by("A"))
	require.ErrorIs(t, c.Verify(), artifact.ErrGone)
}

func TestFinalise(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	id := b.list(all)[0].ID
	e, err := b.library.Finalise(ctx, id)
	require.NoError(t, err)
	require.True(t, e.Final)
	again, err := b.library.Finalise(ctx, id)
	require.NoError(t, err)
	require.Equal(t, e, again)

	b.tree.Write("/a", "22", by("A"))
	require.Equal(t, []string{"/a A replaced", "/a A live"}, b.paths(all))
	_, err = b.library.Finalise(ctx, "nothing")
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestAdd(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.tree.Behind(func() { b.tree.Write("/found", "1", by("A")) })
	b.tree.Write("/final.py", "1", by("A"))
	b.end("A")
	b.tree.Write("/open.py", "1", by("B"))
	require.Empty(t, b.paths(all))

	v, err := b.library.Add(ctx, "s1", "/found", "A")
	require.NoError(t, err)
	require.Equal(t, session.Attribution{Sureness: session.Declared, ToolUseID: "A", ExecutionID: "e1"}, v.Who)
	require.Equal(t, artifact.ReasonAdded, v.Reason)
	again, err := b.library.Add(ctx, "s1", "/found", "")
	require.NoError(t, err)
	require.Equal(t, v.ID, again.ID, "the same content is the same artifact")

	v, err = b.library.Add(ctx, "s1", "/final.py", "B")
	require.NoError(t, err)
	require.Equal(t, "A", v.Who.ToolUseID, "what is known is kept")
	require.Equal(t, session.Exact, v.Who.Sureness)
	v, err = b.library.Add(ctx, "s1", "/open.py", "")
	require.NoError(t, err)
	require.False(t, v.Final)
	b.end("B")
	require.Equal(t, []string{"/final.py A live", "/found A live", "/open.py B live"}, b.paths(all))

	removed, err := b.library.Remove(ctx, v.ID)
	require.NoError(t, err)
	require.True(t, removed.Removed)
	b.restart()
	require.Equal(t, []string{"/final.py A live", "/found A live"}, b.paths(artifact.ListQuery{}))
	_, err = b.library.Add(ctx, "s1", "/open.py", "")
	require.NoError(t, err)
	require.Len(t, b.paths(artifact.ListQuery{}), 3, "added again")

	for path, want := range map[string]error{"/none": session.ErrNotFound, "found": session.ErrInvalid, "/a/../found": session.ErrInvalid, "/": session.ErrInvalid} {
		_, err := b.library.Add(ctx, "s1", path, "")
		require.ErrorIs(t, err, want, path)
	}
	b.tree.Behind(func() { b.tree.Write("/found2", "1", by("A")) })
	_, err = b.library.Add(ctx, "s1", "/found2", "nobody")
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = b.library.Add(ctx, "s2", "/found", "")
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestRemoveOpen(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	_, err := b.library.Remove(context.Background(), b.list(all)[0].ID)
	require.NoError(t, err)
	b.restart()
	b.end("A")
	require.Empty(t, b.paths(artifact.ListQuery{}))
	require.Equal(t, []string{"/a A live"}, b.paths(all))
}

func TestVersions(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.end("A")
	b.tree.Write("/a", "2", by("B"))
	b.end("B")
	b.restart()
	b.sessions.BeginTool("C", "e1")
	b.tree.Write("/a", "3", by("C"))
	b.end("C")
	versions, err := b.library.Versions(context.Background(), "s1", "/a")
	require.NoError(t, err)
	require.Len(t, versions, 3)
	for i, v := range versions {
		require.Equal(t, i+1, v.Version)
	}
	require.Equal(t, artifact.Live, versions[2].State)
}

func TestSessionWithoutAMount(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.tree.Write("/final", "1", by("A"))
	b.end("A")
	b.tree.Write("/open", "1", by("B"))
	require.NoError(t, b.recorder.Flush(ctx))

	bare := artifact.NewLibrary(b.store, b.sessions, nil, slog.New(slog.DiscardHandler))
	l, err := bare.List(ctx, artifact.ListQuery{SessionID: "s1"})
	require.NoError(t, err)
	require.Len(t, l.Views, 1, "an open entry cannot be evaluated")
	require.Equal(t, artifact.Lost, l.Views[0].State)
	require.Contains(t, l.Views[0].LostReason, "no live mount")
	_, err = bare.Open(ctx, l.Views[0].ID)
	require.ErrorIs(t, err, artifact.ErrGone)

	open := 0
	with := artifact.NewLibrary(b.store, b.sessions, func(string) (artifact.Tree, func(), error) {
		open++
		return b.tree, func() { open-- }, nil
	}, slog.New(slog.DiscardHandler))
	l, err = with.List(ctx, artifact.ListQuery{SessionID: "s1"})
	require.NoError(t, err)
	require.Len(t, l.Views, 2)
	c, err := with.Open(ctx, l.Views[0].ID)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = with.Finalise(ctx, l.Views[1].ID)
	require.ErrorIs(t, err, session.ErrConflict)
	_, err = with.Show(ctx, l.Views[0].ID)
	require.NoError(t, err)
	_, err = with.Versions(ctx, "s1", "/final")
	require.NoError(t, err)
	_, err = with.Remove(ctx, l.Views[0].ID)
	require.NoError(t, err)
	b.tree.Unlink("/final")
	_, err = with.Open(ctx, l.Views[0].ID)
	require.ErrorIs(t, err, artifact.ErrGone)
	require.Zero(t, open, "trees that are not closed")
}

// lockedSessions are sessions of which one question takes a lock that ends hold while they collect.
type lockedSessions struct {
	artifact.Sessions
	ops *sync.Mutex
}

func (s lockedSessions) CollectInto(sessionID, toolUseID string) (string, error) {
	s.ops.Lock()
	defer s.ops.Unlock()
	return s.Sessions.CollectInto(sessionID, toolUseID)
}

func TestAddBesideAnEnd(t *testing.T) {
	b := newBench(t)
	b.stop()
	ops := &sync.Mutex{}
	r, err := artifact.NewRecorder(context.Background(), artifact.RecorderConfig{SessionID: "s1", Store: b.store, Tree: b.tree,
		Sessions: lockedSessions{b.sessions, ops}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	b.recorder = r
	b.library.Attach("s1", r, b.tree)
	b.tree.Write("/found", "1", by("A"))
	ops.Lock()
	added := make(chan error, 1)
	go func() {
		_, err := b.library.Add(context.Background(), "s1", "/found", "A")
		added <- err
	}()
	for range 100 { // an end at any time meanwhile
		require.NoError(t, r.Flush(context.Background()))
		runtime.Gosched()
	}
	b.end("A")
	ops.Unlock()
	require.NoError(t, <-added)
}
