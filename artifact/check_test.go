package artifact_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

func (b *bench) check(t *testing.T) []string {
	lines := []string{}
	require.NoError(t, b.library.Check(t.Context(), func(line string) { lines = append(lines, line) }))
	return lines
}

func TestCheckFindsWhatDisagrees(t *testing.T) {
	b := carried(t)
	b.tree.Write("/gone", "1", by("B"))
	b.tree.Write("/other", "1", by("B"))
	b.tree.Write("/stray", "1", by("B"))
	require.Empty(t, b.check(t))

	b.tree.Behind(func() {
		b.tree.Unlink("/gone")
		b.tree.Unlink("/other")
		b.tree.Write("/other", "2", by("B"))
	})
	stray := b.list(artifact.ListQuery{All: true})[0].Entry
	stray.ID, stray.Final, stray.Seq, stray.Version = "01ARZ3NDEKTSV4RRFFQ69G5FAV", false, 0, 0
	impossible := b.list(artifact.ListQuery{All: true})[1].Entry
	impossible.Version, impossible.DerivedFrom = 0, "nothing"
	require.NoError(t, b.store.Apply(t.Context(), []artifact.Mutation{{Put: &stray}, {Put: &impossible}}))
	lines := b.check(t)
	require.Len(t, lines, 5)
	for _, says := range []string{"has no version", "is derived from nothing", "in the index and not in the recorder", "no file is at /gone", "another file is at /other"} {
		require.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, says) }), "%s in %v", says, lines)
	}
}

func TestCheckRaisesNoFalseAlarm(t *testing.T) {
	b := newBench(t)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b.tree.Write("/d/tmp", "1", by("A"))
			b.tree.Rename("/d/tmp", "/d/a", by("A"))
			b.tree.RenameDir("/d", "/e", by("A"))
			b.tree.Unlink("/e/a")
			b.tree.Write("/n", "1", by("B"))
			b.tree.Unlink("/n")
		}
	})
	for range 20 {
		require.Empty(t, b.check(t))
	}
	close(stop)
	busy.Wait()
}
