package artifact_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

// carried is a bench where tool use A wrote two artifacts and a script below /out and ended.
func carried(t *testing.T) *bench {
	b := newBench(t)
	b.tree.Write("/out/a.csv", "1", by("A"))
	b.tree.Write("/out/sub/b.csv", "2", by("A"))
	b.tree.Write("/out/make.py", "3", by("A"))
	b.end("A")
	return b
}

func TestRenamedDirectoryCarriesArtifacts(t *testing.T) {
	b := carried(t)
	before := b.list(artifact.ListQuery{})
	b.tree.RenameDir("/out", "/report", by("B"))
	require.Equal(t, []string{"/report/a.csv B live", "/report/sub/b.csv B live"}, b.paths(artifact.ListQuery{}))
	b.end("B")
	after := b.list(artifact.ListQuery{})
	require.Len(t, after, 2)
	for i, v := range after {
		require.Equal(t, before[i].ID, v.DerivedFrom)
		require.True(t, v.Final)
	}
	require.Equal(t, []string{
		"/out/a.csv A deleted", "/out/sub/b.csv A deleted", "/report/a.csv B live", "/report/sub/b.csv B live",
	}, b.paths(artifact.ListQuery{All: true}))
}

func TestRenamedDirectoryOfNobody(t *testing.T) {
	b := carried(t)
	b.tree.RenameDir("/out", "/report", byNobody())
	b.restart()
	require.Equal(t, []string{"/report/a.csv  live", "/report/sub/b.csv  live"}, b.paths(artifact.ListQuery{}))
	b.mark()
	b.tree.RenameDir("/report", "/out", by("B"))
	require.Equal(t, []string{
		"/out/a.csv A live", "/out/sub/b.csv A live", "/out/a.csv B live", "/out/sub/b.csv B live",
	}, b.paths(artifact.ListQuery{}), "back at the old place the old record is true again, as with files")
}

// What happens before the look at the index is in its answer, without a wait between.
func TestRenamedDirectoryAndWhatFollows(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(b *bench)
		want []string
	}{
		{"renamed on", func(b *bench) {
			b.tree.RenameDir("/report", "/z", by("A"))
			b.tree.RenameDir("/z/sub", "/y", by("A"))
		}, []string{"/z/a.csv B live", "/y/b.csv B live"}},
		{"another directory takes its place", func(b *bench) {
			b.tree.Write("/other/a.csv", "9", by("B"))
			b.tree.RenameDir("/other", "/out", by("B"))
		}, []string{"/report/a.csv B live", "/report/sub/b.csv B live", "/out/a.csv B live"}},
		{"a file is removed", func(b *bench) { b.tree.Unlink("/report/a.csv") }, []string{"/report/sub/b.csv B live"}},
		{"a file is renamed", func(b *bench) { b.tree.Rename("/report/a.csv", "/c.csv", by("B")) },
			[]string{"/c.csv B live", "/report/sub/b.csv B live"}},
		{"a file is rewritten", func(b *bench) { b.tree.Write("/report/a.csv", "new", by("B")) },
			[]string{"/report/a.csv B live", "/report/sub/b.csv B live"}},
		{"a file is replaced", func(b *bench) {
			b.tree.Write("/tmp", "new", by("B"))
			b.tree.Rename("/tmp", "/report/a.csv", by("B"))
		}, []string{"/report/a.csv B live", "/report/sub/b.csv B live"}},
		{"attributes change", func(b *bench) { b.tree.Chmod("/report/a.csv") },
			[]string{"/report/a.csv B live", "/report/sub/b.csv B live"}},
		{"exchanged", func(b *bench) {
			b.tree.Write("/x/n.csv", "new", by("B"))
			b.tree.Exchange("/x", "/report", by("B"))
		}, []string{"/x/a.csv B live", "/x/sub/b.csv B live", "/report/n.csv B live"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := carried(t)
			b.tree.RenameDir("/out", "/report", by("B"))
			c.then(b)
			require.ElementsMatch(t, c.want, b.paths(artifact.ListQuery{}))
			b.end("B")
			require.ElementsMatch(t, c.want, b.paths(artifact.ListQuery{}))
		})
	}
}

func TestRenamedDirectoryWithReplacedAndRemovedArtifacts(t *testing.T) {
	b := carried(t)
	views := b.list(artifact.ListQuery{})
	_, err := b.library.Remove(t.Context(), views[1].ID)
	require.NoError(t, err)
	b.tree.Behind(func() { b.tree.Write("/out/a.csv", "behind", by("B")) })
	b.tree.RenameDir("/out", "/report", by("B"))
	require.Empty(t, b.paths(artifact.ListQuery{}))
}

func TestRenamedDirectoryIsTriedAgain(t *testing.T) {
	b := newFaultBench(t)
	b.tree.Write("/out/a.csv", "1", by("A"))
	require.NoError(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("A")))
	b.store.set(errors.New("broken"), nil)
	b.tree.RenameDir("/out", "/report", by("B"))
	require.Error(t, b.Flush(t.Context()))
	b.store.set(nil, nil)
	require.NoError(t, b.Flush(t.Context()))
	open, err := b.store.OpenEntries(t.Context(), "s1")
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, "/report/a.csv", open[0].Path())
	require.NotEmpty(t, open[0].DerivedFrom)
	b.close(t)
}

// What the renames of one flush carry is bounded together.
func TestRenamedDirectoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // nothing is flushed but by the test
		const most = 10_000
		b := newFaultBench(t)
		defer b.close(t)
		for i := range most - 3 {
			b.tree.Write(fmt.Sprintf("/out/%d.csv", i), "1", by("A"))
		}
		for i := range 10 {
			b.tree.Write(fmt.Sprintf("/more/%d.csv", i), "1", by("A"))
		}
		require.NoError(t, b.FinishToolUse(t.Context(), b.sessions.EndTool("A")))
		b.tree.RenameDir("/out", "/report", by("B"))
		b.tree.RenameDir("/more", "/less", by("B"))
		require.NoError(t, b.Flush(t.Context()))
		open, err := b.store.OpenEntries(t.Context(), "s1")
		require.NoError(t, err)
		require.Len(t, open, most)
	})
}
