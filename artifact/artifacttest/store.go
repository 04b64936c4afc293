// Package artifacttest is the conformance suite of artifact.Store and artifact.TokenStore, and the
// in-memory tree that the collector is tested against.
//
// Every implementation runs all of it, from its own test:
//
//	artifacttest.Test(t, func(t *testing.T) artifact.Store { return open(t) })
//	artifacttest.TestTokens(t, func(t *testing.T) artifact.TokenStore { return open(t) })
package artifacttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Test runs the suite of artifact.Store. open returns a fresh, empty store for each case.
func Test(t *testing.T, open func(t *testing.T) artifact.Store) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s artifact.Store)
	}{
		{"empty", testEmpty},
		{"every field comes back", testFields},
		{"put replaces", testReplace},
		{"what was put is a copy", testCopy},
		{"names are bytes", testByteNames},
		{"delete", testDelete},
		{"open entries in order of creation", testOpenOrder},
		{"open becomes final", testBecomesFinal},
		{"query", testQuery},
		{"pages", testPages},
		{"entries of an inode", testEntriesOf},
		{"versions of a path", testVersions},
		{"artifacts below a directory", testBelow},
		{"artifacts below a long path", testBelowLong},
		{"sequence numbers are remembered", testLastSeq},
		{"rename directory", testRenameDir},
		{"rename directory in order with puts", testRenameOrder},
		{"rename directory chain and exchange", testRenameChain},
		{"rename directory leaves final entries", testRenameFinal},
		{"same batch twice", testTwice},
		{"sessions are apart", testSessions},
		{"concurrent use", testConcurrent},
		{"sync", func(t *testing.T, s artifact.Store) { require.NoError(t, s.Sync()) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

// entry returns an open entry number n of session s1 named names. IDs, times and inodes grow with n.
func entry(n int, names ...string) artifact.Entry {
	return artifact.Entry{
		ID:        fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69G%04d", n),
		SessionID: "s1",
		Who:       session.Attribution{Sureness: session.Exact, Source: session.SourceCgroup, ToolUseID: "t1", ExecutionID: "e1"},
		File:      change.FileID{Dev: 1, Ino: uint64(n), Birth: int64(n)},
		Names:     names,
		Stamp:     change.Stamp{Size: int64(n), Mtime: 1, Ctime: 2},
		CreatedAt: epoch.Add(time.Duration(n) * time.Second),
	}
}

// finalEntry returns a final artifact with sequence number n.
func finalEntry(n int, names ...string) artifact.Entry {
	e := entry(n, names...)
	e.Final, e.Seq, e.Artifact, e.Version = true, uint64(n), true, 1
	e.FinalAt = e.CreatedAt.Add(time.Millisecond)
	return e
}

func put(t *testing.T, s artifact.Store, entries ...artifact.Entry) {
	t.Helper()
	batch := make([]artifact.Mutation, len(entries))
	for i := range entries {
		batch[i].Put = &entries[i]
	}
	require.NoError(t, s.Apply(context.Background(), batch))
}

func rename(from, to string) artifact.Mutation {
	return artifact.Mutation{RenameDir: &artifact.RenameDir{SessionID: "s1", From: from, To: to}}
}

func ids(entries []artifact.Entry) []string {
	out := []string{}
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func get(t *testing.T, s artifact.Store, id string) artifact.Entry {
	t.Helper()
	e, err := s.Entry(context.Background(), id)
	require.NoError(t, err)
	return e
}

func openNames(t *testing.T, s artifact.Store) [][]string {
	t.Helper()
	open, err := s.OpenEntries(context.Background(), "s1")
	require.NoError(t, err)
	var names [][]string
	for _, e := range open {
		names = append(names, e.Names)
	}
	return names
}

func entriesOf(t *testing.T, s artifact.Store, q artifact.Query) []string {
	t.Helper()
	found, err := s.Entries(context.Background(), q)
	require.NoError(t, err)
	return ids(found)
}

func testConcurrent(t *testing.T, s artifact.Store) {
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				e := finalEntry(1+w*each+i, fmt.Sprintf("/f%d", w))
				if err := s.Apply(context.Background(), []artifact.Mutation{{Put: &e}}); err != nil {
					t.Error(err)
				}
				if _, err := s.Versions(context.Background(), "s1", "/f0"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}), writers*each)
	last, err := s.LastSeq(context.Background(), "s1")
	require.NoError(t, err)
	require.Equal(t, uint64(writers*each), last)
}
