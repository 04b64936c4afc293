package index

import (
	"context"
	"fmt"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

func move(from, to string) artifact.Mutation {
	return artifact.Mutation{RenameDir: &artifact.RenameDir{SessionID: "s1", From: from, To: to}}
}

func logLen(t *testing.T, x *Index) (n int) {
	t.Helper()
	require.NoError(t, x.db.View(func(tx *badger.Txn) error {
		log, err := renames(tx, "s1", 0)
		n = len(log)
		return err
	}))
	return n
}

func TestRenameLogIsTrimmed(t *testing.T) {
	ctx := context.Background()
	x := fresh(t)
	seed(t, x)
	require.NoError(t, x.Apply(ctx, []artifact.Mutation{move("/a", "/b")}))
	require.Zero(t, logLen(t, x), "nobody needs it")

	apply(t, x, opened("o1", "/a/1"))
	require.NoError(t, x.Apply(ctx, []artifact.Mutation{move("/a", "/b"), move("/b", "/c")}))
	apply(t, x, opened("o2", "/a/2"))
	require.NoError(t, x.Apply(ctx, []artifact.Mutation{move("/a", "/d")}))
	require.Equal(t, 3, logLen(t, x))

	apply(t, x, final("o1", 1, "/c/1"))
	require.Equal(t, 1, logLen(t, x))
	e, err := x.Entry(ctx, "o2")
	require.NoError(t, err)
	require.Equal(t, []string{"/d/2"}, e.Names)

	require.NoError(t, x.Apply(ctx, []artifact.Mutation{{Delete: &artifact.EntryKey{SessionID: "s1", ID: "o2"}}}))
	require.Zero(t, logLen(t, x))
}

func TestLongRenameLogIsFolded(t *testing.T) {
	ctx := context.Background()
	x := fresh(t)
	seed(t, x)
	var entries []artifact.Entry
	for n := range 250 { // more than one transaction of foldSome
		entries = append(entries, opened(fmt.Sprintf("o%03d", n), fmt.Sprintf("/a/caf\xe9%d", n), "/x"))
	}
	apply(t, x, entries...)
	var batch []artifact.Mutation
	for range foldAfter/2 + 1 {
		batch = append(batch, move("/a", "/b"), move("/b", "/a"))
	}
	require.NoError(t, x.Apply(ctx, append(batch, move("/a", "/z"))))
	require.LessOrEqual(t, logLen(t, x), foldAfter)
	found, err := x.OpenEntries(ctx, "s1")
	require.NoError(t, err)
	require.Len(t, found, 250)
	require.Equal(t, []string{"/z/caf\xe90", "/x"}, found[0].Names)
	require.Equal(t, []string{"/z/caf\xe9249", "/x"}, found[249].Names)
}
