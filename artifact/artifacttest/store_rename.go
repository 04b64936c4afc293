package artifacttest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

func testRenameDir(t *testing.T, s artifact.Store) {
	put(t, s, entry(1, "/a/x"), entry(2, "/a/b/y", "/z"), entry(3, "/ab/x"), entry(4, "/c/a/x"), entry(5, "/a"))
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{rename("/a", "/n/m")}))
	require.Equal(t, [][]string{{"/n/m/x"}, {"/n/m/b/y", "/z"}, {"/ab/x"}, {"/c/a/x"}, {"/a"}}, openNames(t, s))
	require.Equal(t, "/n/m/x", get(t, s, entry(1).ID).Path())
}

func testRenameOrder(t *testing.T, s artifact.Store) {
	before, after := entry(1, "/a/before"), entry(2, "/a/after")
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{
		{Put: &before}, rename("/a", "/b"), {Put: &after},
	}))
	require.Equal(t, [][]string{{"/b/before"}, {"/a/after"}}, openNames(t, s))

	// A put after the rename has the names as they are then, also of an older entry.
	put(t, s, entry(1, "/a/back"))
	require.Equal(t, [][]string{{"/a/back"}, {"/a/after"}}, openNames(t, s))
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{rename("/a", "/c")}))
	require.Equal(t, [][]string{{"/c/back"}, {"/c/after"}}, openNames(t, s))
}

func testRenameChain(t *testing.T, s artifact.Store) {
	put(t, s, entry(1, "/a/1"), entry(2, "/b/2"), entry(3, "/a/sub/3"))
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{
		rename("/a", "/\x00x"), rename("/b", "/a"), rename("/\x00x", "/b"), // an exchange
		rename("/b/sub", "/a/sub"), rename("/a", "/z"), rename("/z", "/y"),
	}))
	require.Equal(t, [][]string{{"/b/1"}, {"/y/2"}, {"/y/sub/3"}}, openNames(t, s))
}

func testRenameFinal(t *testing.T, s artifact.Store) {
	put(t, s, finalEntry(1, "/a/x"), entry(2, "/a/y"))
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{rename("/a", "/b")}))
	require.Equal(t, "/a/x", get(t, s, finalEntry(1).ID).Path())

	final := finalEntry(2, "/b/y")
	put(t, s, final)
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{rename("/b", "/c")}))
	versions, err := s.Versions(context.Background(), "s1", "/b/y")
	require.NoError(t, err)
	require.Equal(t, []string{final.ID}, ids(versions))
}

// testTwice applies a whole batch again, as a caller does that saw it fail part way.
func testTwice(t *testing.T, s artifact.Store) {
	open, final := entry(1, "/a/x"), finalEntry(2, "/f")
	batch := []artifact.Mutation{
		{Put: &open}, {Put: &final}, rename("/a", "/b"),
		{Delete: &artifact.EntryKey{SessionID: "s1", ID: "01ARZ3NDEKTSV4RRFFQ69G0009"}},
	}
	for range 2 {
		require.NoError(t, s.Apply(context.Background(), batch))
	}
	require.Equal(t, [][]string{{"/b/x"}}, openNames(t, s))
	require.Equal(t, []string{final.ID}, entriesOf(t, s, artifact.Query{SessionID: "s1"}))
}
