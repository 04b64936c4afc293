package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

func rows(t *testing.T, x *Index) (n int) {
	t.Helper()
	require.NoError(t, x.db.View(func(tx *badger.Txn) error {
		return scan(tx, nil, nil, func([]byte, *badger.Item) (bool, error) { n++; return true, nil })
	}))
	return n
}

// crowd puts a session with rows of every kind, more than one transaction deletes.
func crowd(t *testing.T, x *Index) {
	t.Helper()
	sample(t, x)
	var entries []artifact.Entry
	for n := 10; n < 510; n++ {
		entries = append(entries, final(fmt.Sprint("n", n), uint64(n), "/f"), opened(fmt.Sprint("o", n), "/d/g"))
	}
	apply(t, x, entries...)
	require.NoError(t, x.Apply(context.Background(), []artifact.Mutation{move("/d", "/e"), move("/e", "/d")}))
}

func TestDeleteSessionLeavesNothing(t *testing.T) {
	x := fresh(t)
	empty := rows(t, x)
	crowd(t, x)
	require.NoError(t, x.DeleteSession(t.Context(), "s1"))
	require.Equal(t, empty, rows(t, x))
}

func TestDeleteSessionGoesOn(t *testing.T) {
	x := fresh(t)
	empty := rows(t, x)
	crowd(t, x)
	ctx, cancel := context.WithCancel(t.Context())
	// The first page of entries is removed, then the caller goes away.
	n := 0
	err := x.pages(ctx, under(kindFinal, "s1"), nil, func(tx *badger.Txn, _, primary []byte) error {
		if n++; n == deleteSize {
			cancel()
		}
		return x.remove(tx, primary)
	}, new(int))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, rows(t, x), 10_000)
	_, err = x.Session(t.Context(), "s1")
	require.NoError(t, err, "it can be found to be deleted again")
	require.NoError(t, x.DeleteSession(t.Context(), "s1"))
	require.Equal(t, empty, rows(t, x))
	require.ErrorIs(t, x.DeleteSession(t.Context(), "s1"), session.ErrNotFound)
}

func TestLargeBatchIsSplit(t *testing.T) {
	x := fresh(t)
	seed(t, x)
	var names []string
	for n := range 30 {
		names = append(names, fmt.Sprintf("/%04000d", n))
	}
	var entries []artifact.Entry
	for n := 1; n <= 100; n++ { // about 12 MB where a transaction takes 2.4 MB
		entries = append(entries, final(fmt.Sprint("n", n), uint64(n), names...))
	}
	apply(t, x, entries...)
	found, err := x.Entries(t.Context(), artifact.Query{SessionID: "s1"})
	require.NoError(t, err)
	require.Len(t, found, 100)
	require.Equal(t, names, found[99].Names)
}

func TestEntryTooLarge(t *testing.T) {
	x := fresh(t)
	seed(t, x)
	e := final("n1", 1, slices.Repeat([]string{"/" + strings.Repeat("x", 4000)}, 9000)...)
	err := x.Apply(t.Context(), []artifact.Mutation{{Put: &e}})
	require.ErrorIs(t, err, session.ErrInvalid)
}
