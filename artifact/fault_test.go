package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/artifact/artifacttest"
	"aimon.at/vfsd/artifact/memstore"
	"aimon.at/vfsd/change"
)

// faulty is a Store whose Apply fails or stalls while it is told to.
type faulty struct {
	*memstore.Store
	mu    sync.Mutex // guards all below
	err   error
	part  bool // carry out half of a batch before failing
	stall chan struct{}
	fired int
}

func (f *faulty) Apply(ctx context.Context, batch []artifact.Mutation) error {
	f.mu.Lock()
	err, part, stall := f.err, f.part, f.stall
	if err != nil {
		f.fired++
	}
	f.mu.Unlock()
	if stall != nil {
		<-stall
	}
	if err == nil {
		return f.Store.Apply(ctx, batch)
	}
	if part {
		if applied := f.Store.Apply(ctx, batch[:(len(batch)+1)/2]); applied != nil {
			return applied
		}
	}
	return err
}

func (f *faulty) set(err error, stall chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.stall = err, stall
}

func (f *faulty) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

type faultBench struct {
	*artifact.Recorder
	store    *faulty
	tree     *artifacttest.Tree
	sessions *artifacttest.Sessions
}

func newFaultBench(t *testing.T) *faultBench {
	b := &faultBench{store: &faulty{Store: memstore.New()}, tree: artifacttest.NewTree(), sessions: &artifacttest.Sessions{}}
	b.sessions.Begin("e1", "", true)
	b.sessions.BeginTool("A", "e1")
	b.sessions.BeginTool("B", "e1")
	var err error
	b.Recorder, err = artifact.NewRecorder(context.Background(), artifact.RecorderConfig{
		SessionID: "s1", Store: b.store, Tree: b.tree, Sessions: b.sessions, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	b.tree.Report(b.Record)
	return b
}

func (b *faultBench) close(t *testing.T) { require.NoError(t, b.Close(context.Background())) }

func TestRowsFollowWithinTheBatchTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		b.tree.Write("/a", "1", by("A"))
		time.Sleep(60 * time.Millisecond)
		open, err := b.store.OpenEntries(t.Context(), "s1")
		require.NoError(t, err)
		require.Len(t, open, 1)
		require.Zero(t, b.Pending())
		b.close(t)
	})
}

func TestStoreThatFailsIsTriedAgain(t *testing.T) {
	for _, part := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newFaultBench(t)
			b.store.part = part
			for _, p := range []string{"/d/a", "/d/b", "/e/a"} {
				b.tree.Write(p, "1", by("A"))
			}
			require.NoError(t, b.Flush(t.Context()))
			b.store.set(errors.New("no space left on device"), nil)
			b.tree.RenameDir("/d", "/f", by("A"))
			b.tree.RenameDir("/e", "/d", by("A"))
			b.tree.Unlink("/f/b")
			b.tree.Write("/new", "1", by("A"))
			time.Sleep(5 * time.Second)
			require.Positive(t, b.store.failures())
			require.Positive(t, b.Pending())
			require.Error(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("A")))

			b.store.set(nil, nil)
			time.Sleep(2 * time.Second)
			open, err := b.store.OpenEntries(t.Context(), "s1")
			require.NoError(t, err)
			var paths []string
			for _, e := range open {
				paths = append(paths, e.Path())
			}
			require.Equal(t, []string{"/f/a", "/d/a", "/new"}, paths)
			require.NoError(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("A")))
			final, err := b.store.Entries(t.Context(), artifact.Query{SessionID: "s1"})
			require.NoError(t, err)
			for i, e := range final {
				require.Equal(t, uint64(i+1), e.Seq)
				require.Equal(t, 1, e.Version)
			}
			require.Len(t, final, 3)
			b.close(t)
		})
	}
}

// A store that stalls delays nobody who writes, and what waits for it does not grow with the
// number of events.
func TestStalledStoreDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		stall := make(chan struct{})
		b.store.set(nil, stall)
		b.tree.Write("/d/a", "0", by("A"))
		time.Sleep(time.Second) // the writer hangs in Apply
		for i := range 5000 {
			b.tree.Write("/d/a", fmt.Sprint(i), by("A"))
			b.tree.Write("/d/b", fmt.Sprint(i), by("B"))
			b.tree.RenameDir("/d", "/e", by("A"))
			b.tree.RenameDir("/e", "/d", by("A"))
		}
		synctest.Wait()
		require.Less(t, b.Pending(), 2100, "1,000 renames, for open and for final entries")
		b.store.set(nil, nil)
		close(stall)
		time.Sleep(time.Second)
		require.Zero(t, b.Pending())
		open, err := b.store.OpenEntries(t.Context(), "s1")
		require.NoError(t, err)
		require.Len(t, open, 2)
		b.close(t)
	})
}

func TestLateEntryOfAnEndedExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		require.NoError(t, b.FinishExecution(t.Context(), b.sessions.End("e1")))
		b.sessions.EndTool("A")
		b.tree.Write("/late", "1", by("A"))
		time.Sleep(1500 * time.Millisecond)
		b.tree.Write("/late", "2", by("A"))
		synctest.Wait()
		final := func() int {
			entries, err := b.store.Entries(t.Context(), artifact.Query{SessionID: "s1"})
			require.NoError(t, err)
			for _, e := range entries {
				require.True(t, e.Who.Late)
			}
			return len(entries)
		}
		time.Sleep(1500 * time.Millisecond)
		require.Zero(t, final(), "it is not quiet yet")
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, final())
		b.close(t)
	})
}

func TestNamelessFilesAreBounded(t *testing.T) {
	b := newFaultBench(t)
	first := b.tree.Nameless("1", by("A"))
	for range 25000 {
		b.tree.Nameless("1", by("A"))
	}
	last := b.tree.Nameless("1", by("A"))
	first("/first", by("B"))
	last("/last", by("B"))
	require.NoError(t, b.Flush(t.Context()))
	open, err := b.store.OpenEntries(t.Context(), "s1")
	require.NoError(t, err)
	require.Len(t, open, 2)
	require.Equal(t, "A", open[0].Who.ToolUseID, "remembered")
	require.Equal(t, "B", open[1].Who.ToolUseID, "forgotten: whoever names it")
	b.close(t)
}

// Tools write, rename and end while others mark and list.
func TestConcurrentUse(t *testing.T) {
	const tools, files = 8, 100
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range tools {
		id := fmt.Sprint("T", i)
		b.sessions.BeginTool(id, "e1")
		wg.Go(func() {
			for f := range files {
				p := fmt.Sprintf("/%s/%d", id, f)
				b.tree.Write(p+".part", "1", by(id))
				b.tree.Write(p+".part", "22", by(id))
				b.tree.Rename(p+".part", p, by(id))
			}
			if err := b.recorder.FinishToolUse(context.Background(), b.sessions.EndTool(id)); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for range 5 {
				if _, err := b.recorder.Mark(context.Background(), b.e1); err != nil {
					t.Error(err)
				}
				if _, err := b.library.List(context.Background(), artifact.ListQuery{SessionID: "s1"}); err != nil {
					t.Error(err)
				}
				b.recorder.Fact(change.FileID{Ino: 1}, artifact.FactToolUse)
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	for _, v := range b.list(artifact.ListQuery{}) {
		require.True(t, v.Final)
		require.Equal(t, "/"+v.Who.ToolUseID, v.Path()[:3])
		require.False(t, seen[v.Seq])
		seen[v.Seq] = true
	}
	require.Len(t, seen, tools*files)
}

func TestListingWhileTheIndexCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFaultBench(t)
		library := artifact.NewLibrary(b.store, b.sessions, nil, slog.New(slog.DiscardHandler))
		library.Attach("s1", b.Recorder, b.tree)
		b.tree.Write("/written", "1", by("B"))
		require.NoError(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("B")))
		b.tree.Write("/final", "1", by("A"))
		b.store.set(errors.New("no space left on device"), nil)
		require.Error(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("A")))
		b.tree.Write("/open", "1", byNobody())

		l, err := library.List(t.Context(), artifact.ListQuery{SessionID: "s1"})
		require.NoError(t, err)
		var paths []string
		for _, v := range l.Views {
			paths = append(paths, v.Path())
		}
		require.Equal(t, []string{"/written", "/final", "/open"}, paths)
		require.False(t, l.Views[1].Final, "it was not looked at before the index failed")
		c, err := library.Open(t.Context(), l.Views[1].ID)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		b.store.set(nil, nil)
		b.close(t)
	})
}

// A mark counts no number that the Store does not know.
func TestMarkBesideAStoreThatFails(t *testing.T) {
	b := newFaultBench(t)
	defer b.close(t)
	library := artifact.NewLibrary(b.store, b.sessions, nil, slog.New(slog.DiscardHandler))
	library.Attach("s1", b.Recorder, b.tree)
	b.tree.Behind(func() { b.tree.Write("/found", "1", by("A")) })
	b.store.set(errors.New("no space left on device"), nil)
	_, err := library.Add(t.Context(), "s1", "/found", "A")
	require.ErrorContains(t, err, "no space left")
	b.store.set(nil, nil)
	x, _ := b.sessions.ExecutionOf("s1", "e1")
	mark, err := b.Mark(t.Context(), x)
	require.NoError(t, err)
	last, err := b.store.LastSeq(t.Context(), "s1")
	require.NoError(t, err)
	require.Equal(t, last, mark)
}
