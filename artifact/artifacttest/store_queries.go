package artifacttest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
)

func testQuery(t *testing.T, s artifact.Store) {
	fork, plain, removed, other := finalEntry(2, "/b"), finalEntry(3, "/c"), finalEntry(4, "/d"), finalEntry(5, "/e")
	fork.Who.ExecutionID = "e2"
	plain.Artifact = false
	removed.Removed = true
	other.Who.ExecutionID, other.Who.ToolUseID = "e3", "t2"
	put(t, s, other, removed, finalEntry(1, "/a"), plain, fork, entry(6, "/open"))

	for _, c := range []struct {
		name string
		q    artifact.Query
		want []int
	}{
		{"all", artifact.Query{}, []int{1, 2, 3, 4, 5}},
		{"artifacts", artifact.Query{ArtifactsOnly: true}, []int{1, 2, 5}},
		{"one execution", artifact.Query{Executions: []string{"e1"}}, []int{1, 3, 4}},
		{"an execution and its fork", artifact.Query{Executions: []string{"e1", "e2"}}, []int{1, 2, 3, 4}},
		{"unknown execution", artifact.Query{Executions: []string{"e9"}}, nil},
		{"tool use", artifact.Query{ToolUseID: "t2"}, []int{5}},
		{"after a mark", artifact.Query{From: 3}, []int{4, 5}},
		{"after the last", artifact.Query{From: 5}, nil},
		{"out of range", artifact.Query{From: 1<<64 - 1}, nil},
		{"limit", artifact.Query{Limit: 2}, []int{1, 2}},
		{"limit counts matches", artifact.Query{ArtifactsOnly: true, From: 1, Limit: 2}, []int{2, 5}},
		{"everything at once", artifact.Query{Executions: []string{"e1", "e2"}, ToolUseID: "t1", ArtifactsOnly: true, From: 1, Limit: 9}, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.SessionID = "s1"
			want := []string{}
			for _, n := range c.want {
				want = append(want, finalEntry(n).ID)
			}
			require.Equal(t, want, entriesOf(t, s, c.q))
		})
	}
}

func testPages(t *testing.T, s artifact.Store) {
	var all []artifact.Entry
	for n := 1; n <= 257; n++ {
		all = append(all, finalEntry(n, "/f"))
	}
	put(t, s, all...)
	var paged []string
	for from := uint64(0); ; {
		page, err := s.Entries(context.Background(), artifact.Query{SessionID: "s1", From: from, Limit: 10})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, ids(page)...)
		from = page[len(page)-1].Seq
	}
	require.Equal(t, ids(all), paged)
}

func testEntriesOf(t *testing.T, s artifact.Store) {
	first, second, reused, open := finalEntry(1, "/a"), finalEntry(2, "/b"), finalEntry(3, "/c"), entry(4, "/d")
	second.File, open.File = first.File, first.File
	reused.File = first.File
	reused.File.Birth++
	put(t, s, second, reused, first, open)
	found, err := s.EntriesOf(context.Background(), "s1", first.File)
	require.NoError(t, err)
	require.Equal(t, []string{first.ID, second.ID}, ids(found))
	found, err = s.EntriesOf(context.Background(), "s1", change.FileID{Dev: 9, Ino: 9})
	require.NoError(t, err)
	require.Empty(t, found)
}

func testVersions(t *testing.T, s artifact.Store) {
	ctx := context.Background()
	moved := finalEntry(3, "/a", "/a.bak") // the last name is the one shown
	put(t, s, finalEntry(2, "/a"), moved, finalEntry(1, "/a"), finalEntry(4, "/ab"), finalEntry(5, "/a/b"), entry(6, "/a"))
	found, err := s.Versions(ctx, "s1", "/a")
	require.NoError(t, err)
	require.Equal(t, []string{finalEntry(1).ID, finalEntry(2).ID}, ids(found))
	found, err = s.Versions(ctx, "s1", "/a.bak")
	require.NoError(t, err)
	require.Equal(t, []string{moved.ID}, ids(found))
}

func below(t *testing.T, s artifact.Store, dir string, limit int) []string {
	t.Helper()
	found, err := s.ArtifactsBelow(context.Background(), "s1", dir, limit)
	require.NoError(t, err)
	return ids(found)
}

func testBelow(t *testing.T, s artifact.Store) {
	plain, removed, other := finalEntry(7, "/a/plain"), finalEntry(8, "/a/removed"), finalEntry(9, "/a/other")
	plain.Artifact, removed.Removed, other.SessionID = false, true, "s2"
	put(t, s, finalEntry(3, "/a/x"), finalEntry(1, "/a/x"), finalEntry(2, "/a/s/y"), finalEntry(4, "/ab/x"), finalEntry(5, "/a"),
		finalEntry(6, "/a/was", "/a!/x"), plain, removed, other, entry(10, "/a/open"), finalEntry(11, "/a/\xff\x01"), finalEntry(12, "/a/x!"))
	require.ElementsMatch(t, []string{finalEntry(2).ID, finalEntry(3).ID, finalEntry(11).ID, finalEntry(12).ID}, below(t, s, "/a", 99))
	require.Equal(t, []string{finalEntry(2).ID}, below(t, s, "/a/s", 99))
	require.Equal(t, []string{finalEntry(6).ID}, below(t, s, "/a!", 99))
	require.Empty(t, below(t, s, "/a/x", 99))
	require.Empty(t, below(t, s, "/nothing", 99))
	require.Len(t, below(t, s, "/a", 2), 2)

	// With the latest version taken out by hand, the one before counts.
	latest := finalEntry(3, "/a/x")
	latest.Removed = true
	put(t, s, latest)
	require.Contains(t, below(t, s, "/a", 99), finalEntry(1).ID)
	require.NotContains(t, below(t, s, "/a", 99), latest.ID)
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{{Delete: &artifact.EntryKey{SessionID: "s1", ID: finalEntry(1).ID}}}))
	require.NotContains(t, below(t, s, "/a", 99), finalEntry(1).ID)
}

// testBelowLong has paths that are longer than what fits into a key of most stores.
func testBelowLong(t *testing.T, s artifact.Store) {
	deep := strings.Repeat("/"+strings.Repeat("d", 250), 300)
	put(t, s, finalEntry(1, deep+"/a"), finalEntry(2, deep+"/b"), finalEntry(3, deep+"/a"), finalEntry(4, deep+"x/c"))
	require.ElementsMatch(t, []string{finalEntry(2).ID, finalEntry(3).ID}, below(t, s, deep, 9))
	require.Len(t, below(t, s, deep[:251], 9), 3)
}
