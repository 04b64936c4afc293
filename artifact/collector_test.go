package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

var all = artifact.ListQuery{All: true}

func TestCollector(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(b *bench)
		want []string // of all, after both tool uses ended
	}{
		{"create", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
		}, []string{"/a A live"}},
		{"rewrite is one entry", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Write("/a", "2", by("A"))
		}, []string{"/a A live"}},
		{"two tool uses, one file", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Write("/a", "2", by("B"))
		}, []string{"/a A live", "/a B live"}},
		{"write temp then rename", func(b *bench) {
			b.tree.Write("/a", "old", by("A"))
			b.tree.Write("/a.tmp", "new", by("A"))
			b.tree.Rename("/a.tmp", "/a", by("A"))
		}, []string{"/a A live"}},
		{"rename over another's open entry", func(b *bench) {
			b.tree.Write("/a", "old", by("A"))
			b.tree.Write("/b", "new", by("B"))
			b.tree.Rename("/b", "/a", by("B"))
		}, []string{"/a B live"}},
		{"author open: rename by another keeps the author", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Rename("/a", "/b", by("B"))
		}, []string{"/b A live"}},
		{"unlink", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Unlink("/a")
		}, []string{}},
		{"unlink and create again", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Unlink("/a")
			b.tree.Write("/a", "2", by("B"))
		}, []string{"/a B live"}},
		{"rename of an unrecorded file is a write", func(b *bench) {
			b.tree.Behind(func() { b.tree.Write("/old", "1", by("A")) })
			b.tree.Rename("/old", "/new", by("B"))
		}, []string{"/new B live"}},
		{"link of an unrecorded file is a write", func(b *bench) {
			b.tree.Behind(func() { b.tree.Write("/old", "1", by("A")) })
			b.tree.Link("/old", "/new", by("B"))
		}, []string{"/new B live"}},
		{"hard link: the last name is shown", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Link("/a", "/b", by("A"))
		}, []string{"/b A live"}},
		{"hard link: the entry moves to the other name", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Link("/a", "/b", by("A"))
			b.tree.Unlink("/b")
		}, []string{"/a A live"}},
		{"git's way: link to the final name, unlink the temporary one", func(b *bench) {
			b.tree.Write("/obj.temp", "1", by("A"))
			b.tree.Link("/obj.temp", "/obj", by("A"))
			b.tree.Unlink("/obj.temp")
		}, []string{"/obj A live"}},
		{"hard link of another does not change what is shown", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Link("/a", "/b", by("B"))
		}, []string{"/a A live"}},
		{"nameless file that is linked", func(b *bench) {
			b.tree.Nameless("1", by("A"))("/a", by("A"))
		}, []string{"/a A live"}},
		{"nameless file that is not", func(b *bench) {
			b.tree.Nameless("1", by("A"))
		}, []string{}},
		{"nameless file linked by another", func(b *bench) {
			b.tree.Nameless("1", by("A"))("/a", by("B"))
		}, []string{"/a A live"}},
		{"directory renamed", func(b *bench) {
			b.tree.Write("/d/a", "1", by("A"))
			b.tree.Write("/d/sub/b", "1", by("B"))
			b.tree.RenameDir("/d", "/e", by("B"))
			b.tree.Write("/d/c", "1", by("A"))
		}, []string{"/e/a A live", "/d/c A live", "/e/sub/b B live"}},
		{"directory renamed back and forth", func(b *bench) {
			b.tree.Write("/d/a", "1", by("A"))
			b.tree.RenameDir("/d", "/e", by("A"))
			b.tree.RenameDir("/e", "/d", by("A"))
		}, []string{"/d/a A live"}},
		{"directories exchanged", func(b *bench) {
			b.tree.Write("/d/a", "1", by("A"))
			b.tree.Write("/e/b", "1", by("B"))
			b.tree.Exchange("/d", "/e", by("A"))
		}, []string{"/e/a A live", "/d/b B live"}},
		{"files exchanged", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Write("/b", "1", by("B"))
			b.tree.Exchange("/a", "/b", by("A"))
		}, []string{"/b A live", "/a B live"}},
		{"file and directory exchanged", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Write("/d/b", "1", by("B"))
			b.tree.Exchange("/a", "/d", by("A"))
		}, []string{"/d A live", "/a/b B live"}},
		{"unrecorded file exchanged with a recorded one", func(b *bench) {
			b.tree.Write("/a", "1", by("A"))
			b.tree.Behind(func() { b.tree.Write("/b", "1", by("A")) })
			b.tree.Exchange("/a", "/b", by("B"))
		}, []string{"/b A live", "/a B live"}},
		{"name with bytes that are no UTF-8", func(b *bench) {
			b.tree.Write("/\xff\n", "1", by("A"))
		}, []string{"/\xff\n A live"}},
		{"ignore file is no artifact", func(b *bench) {
			b.tree.Write("/.artifactignore", "*.log\n", by("A"))
			b.tree.Write("/x.log", "1", by("A"))
			b.tree.Write("/x", "1", by("A"))
		}, []string{"/x A live"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.run(b)
			open := b.paths(all)
			require.ElementsMatch(t, c.want, open, "while open")
			b.restart()
			require.ElementsMatch(t, c.want, b.paths(all), "after a restart")
			b.end("A")
			b.end("B")
			require.ElementsMatch(t, c.want, b.paths(all), "when final")
			require.Equal(t, c.want, b.paths(all))
			b.restart()
			require.Equal(t, c.want, b.paths(all))
			require.Zero(t, b.recorder.Pending())
		})
	}
}

func TestMoveAfterTheAuthorEnded(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.end("A")
	b.tree.Rename("/a", "/b", by("B"))
	b.end("B")

	views := b.list(all)
	require.Equal(t, []string{"/a A deleted", "/b B live"}, b.paths(all))
	require.Equal(t, views[0].ID, views[1].DerivedFrom)
	require.Equal(t, []string{"/b B live"}, b.paths(artifact.ListQuery{}))
}

func TestLinkAfterTheAuthorEnded(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.end("A")
	b.tree.Link("/a", "/b", by("B"))
	b.end("B")
	require.Equal(t, []string{"/a A live", "/b B live"}, b.paths(all), "a further name moves the ctime only")
}

func TestLateWriteIsAnEntryOfItsOwn(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.tree.SetWritable("/a", true)
	b.end("A")
	b.tree.Write("/a", "22", by("A")) // by a descriptor opened before the end

	views := b.list(all)
	require.Equal(t, []string{"/a A replaced", "/a A live"}, b.paths(all))
	require.True(t, views[0].OpenAtEnd)
	require.False(t, views[0].Who.Late)
	require.True(t, views[1].Who.Late)
	require.False(t, views[1].Final)

	mark := b.mark()
	require.Equal(t, uint64(2), mark)
	views = b.list(all)
	require.True(t, views[1].Final)
	require.Equal(t, []int{1, 2}, []int{views[0].Version, views[1].Version})
}

func TestReleaseAfterTheEndIsNoWrite(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.end("A")
	v := b.list(all)[0]
	b.recorder.Record(change.Event{Kind: change.Write, File: v.File, Path: "/a", Stamp: v.Stamp, Who: late(by("A"))})
	require.Equal(t, []string{"/a A live"}, b.paths(all))
}

func TestAttributesOfAFinalEntry(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.end("A")
	b.tree.Chmod("/a")
	b.tree.Chmod("/a")
	require.Equal(t, []string{"/a A live"}, b.paths(all))

	require.NoError(t, b.tree.SetIntent("/a", []byte("no")))
	require.Empty(t, b.paths(all), "withdrawn")
	w := b.list(artifact.ListQuery{Writes: true})
	require.Equal(t, artifact.ReasonAttribute, w[0].Reason)
	require.NoError(t, b.tree.SetIntent("/a", []byte("yes")))
	require.Equal(t, []string{"/a A live"}, b.paths(all))
	require.Equal(t, 1, b.list(all)[0].Version, "it keeps its version")

	b.tree.Behind(func() { b.tree.Write("/a", "2", by("A")) })
	b.tree.Chmod("/a")
	require.Equal(t, []string{"/a A replaced"}, b.paths(all), "changed content is never brought forward")
}

func TestMark(t *testing.T) {
	b := newBench(t)
	b.sessions.Begin("f1", "e1", true)
	inFork := by("C")
	inFork.ExecutionID = "f1"
	b.sessions.BeginTool("C", "f1")
	b.tree.Write("/open", "1", by("A"))
	b.tree.Write("/nobody", "1", byNobody())
	b.tree.Write("/fork", "1", inFork)
	require.Equal(t, uint64(1), b.mark())
	b.end("C")
	require.Equal(t, uint64(2), b.mark())
	b.end("A")

	require.Equal(t, []string{"/nobody  live", "/fork C live", "/open A live"}, b.paths(artifact.ListQuery{ExecutionID: "e1"}))
	require.Equal(t, []string{"/nobody  live", "/open A live"}, b.paths(artifact.ListQuery{ExecutionID: "e1", NoForks: true}))
	require.Equal(t, []string{"/open A live"}, b.paths(artifact.ListQuery{From: 2}))
	require.Empty(t, b.paths(artifact.ListQuery{From: 99}))
	require.Equal(t, uint64(3), b.mark())
}

func TestFinishExecution(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.tree.Write("/b", "1", byNobody())
	require.NoError(t, b.recorder.FinishExecution(context.Background(), b.sessions.End("e1")))
	for _, v := range b.list(all) {
		require.True(t, v.Final, v.Path())
	}
	require.Positive(t, b.store.Syncs())
}

func TestEndedWhileTheDaemonWasDown(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	b.tree.Write("/gone", "1", by("A"))
	b.tree.Write("/b", "1", by("B"))
	b.stop()
	b.tree.Write("/b", "changed", by("B"))
	b.tree.Unlink("/gone")
	b.sessions.EndTool("A")
	b.start()

	views := b.list(all)
	require.Equal(t, []string{"/a A live", "/b B live"}, b.paths(all))
	require.True(t, views[0].Final)
	require.False(t, views[1].Final)
	require.Equal(t, int64(7), views[1].Stamp.Size)
}

func TestLookupThatFails(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a.txt", "1", by("A"))
	b.tree.Break(errors.New("input/output error"))
	b.end("A")
	b.tree.Break(nil)
	v := b.list(all)[0]
	require.Equal(t, artifact.Lost, v.State)
	require.Equal(t, "input/output error", v.LostReason)
	require.Equal(t, "text/plain; charset=utf-8", v.MimeType)
	require.Empty(t, b.list(artifact.ListQuery{}))
}

func TestFacts(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "1", by("A"))
	v := b.list(all)[0]
	for range 2 { // open, then final
		for name, want := range map[string]string{
			artifact.FactToolUse: "A", artifact.FactExecution: "e1",
			artifact.FactAttribution: "exact", artifact.FactArtifact: v.ID,
		} {
			got, ok := b.recorder.Fact(v.File, name)
			require.True(t, ok, name)
			require.Equal(t, want, got)
		}
		b.end("A")
	}
	_, ok := b.recorder.Fact(v.File, "user.aimon.artifact")
	require.False(t, ok)
	_, ok = b.recorder.Fact(change.FileID{Dev: 9}, artifact.FactToolUse)
	require.False(t, ok)
}

func TestAmbiguousWritesKeepAllCandidates(t *testing.T) {
	b := newBench(t)
	ambiguous := func(ids ...string) session.Attribution {
		return session.Attribution{Sureness: session.Ambiguous, Source: session.SourceWindow, ExecutionID: "e1", Candidates: ids}
	}
	first := ambiguous("A", "B")
	b.tree.Write("/a", "1", first)
	b.tree.Write("/a", "2", ambiguous("B", "C"))
	b.tree.Write("/a", "3", byNobody())
	views := b.list(all)
	require.Len(t, views, 2, "ambiguous and nobody's are apart")
	require.Equal(t, []string{"A", "B", "C"}, views[0].Who.Candidates)
	require.Equal(t, []string{"A", "B"}, first.Candidates, "an attribution is a value")
}

func TestDeclaredIntentOfTheLastWrite(t *testing.T) {
	b := newBench(t)
	no := false
	who := by("A")
	b.tree.Write("/a", "1", who)
	who.Artifact = &no
	b.tree.Write("/a", "2", who)
	require.Empty(t, b.paths(all))
	w := b.list(artifact.ListQuery{Writes: true})
	require.Equal(t, artifact.ReasonToolUse, w[0].Reason)
}

func TestDirectoryIntent(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.tree.SetIntent("/d", []byte("no")))
	require.NoError(t, b.tree.SetIntent("/d/out", []byte("yes")))
	require.NoError(t, b.tree.SetIntent("/d/odd", []byte("perhaps")))
	for _, p := range []string{"/d/a", "/d/out/a", "/d/out/deep/a", "/d/odd/a", "/a"} {
		b.tree.Write(p, "1", by("A"))
	}
	want := []string{"/d/out/a A live", "/d/out/deep/a A live", "/a A live"}
	require.Equal(t, want, b.paths(all))
	b.end("A")
	require.Equal(t, want, b.paths(all))
}

func TestMimeTypes(t *testing.T) {
	b := newBench(t)
	for path, content := range map[string]string{
		"/image.txt": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "/doc.pdf": "%PDF-1.7\n", "/notes.txt": "hello",
		"/bytes": "\x00\x01\x02\xff", "/empty.csv": "", "/style.css": "a { b: c }",
	} {
		b.tree.Write(path, content, by("A"))
	}
	b.end("A")
	got := map[string]string{}
	for _, v := range b.list(all) {
		got[v.Path()] = v.MimeType
	}
	require.Equal(t, map[string]string{
		"/image.txt": "image/png", "/doc.pdf": "application/pdf", "/notes.txt": "text/plain; charset=utf-8",
		"/bytes": "application/octet-stream", "/empty.csv": "text/csv; charset=utf-8", "/style.css": "text/css; charset=utf-8",
	}, got)
}

func TestManyHardLinks(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/0", "1", by("A"))
	for i := range 1000 {
		b.tree.Link("/0", fmt.Sprintf("/link%d", i), by("A"))
	}
	views := b.list(all)
	require.Equal(t, "/link999", views[0].Path())
	require.Len(t, views[0].Names, 100)
	b.tree.Unlink("/link999")
	require.Equal(t, "/link998", b.list(all)[0].Path())
}

func TestRenamedSymlinkIsNoWrite(t *testing.T) {
	b := newBench(t)
	// To a Tree a directory is as little a regular file as a symlink is.
	b.tree.Behind(func() { b.tree.Write("/dir/file", "1", by("A")) })
	b.recorder.Record(change.Event{Kind: change.Rename, File: change.FileID{Dev: 1, Ino: 99}, From: "/old", Path: "/dir", Who: by("B")})
	require.Empty(t, b.list(artifact.ListQuery{Writes: true}))
	b.end("B")
	require.Empty(t, b.list(artifact.ListQuery{Writes: true}))
	require.Zero(t, b.recorder.Pending())
}

func TestUnlinkOfAnotherNameOfAFinalEntry(t *testing.T) {
	b := newBench(t)
	b.tree.Write("/a", "", by("A"))
	b.tree.Link("/a", "/b", by("A"))
	b.tree.Rename("/b", "/c", by("A"))
	b.end("A")
	require.Equal(t, []string{"/c A live"}, b.paths(all))
	v := b.list(all)[0]
	b.recorder.Record(change.Event{Kind: change.Unlink, File: v.File, Path: "/x", Stamp: v.Stamp})
	b.tree.Chmod("/c")
	require.Equal(t, []string{"/c A live"}, b.paths(all))
	b.tree.Unlink("/a")
	require.Equal(t, []string{"/c A live"}, b.paths(all))
}
