package artifacttest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

func testEmpty(t *testing.T, s artifact.Store) {
	ctx := context.Background()
	_, err := s.Entry(ctx, "01ARZ3NDEKTSV4RRFFQ69G0001")
	require.ErrorIs(t, err, session.ErrNotFound)
	open, err := s.OpenEntries(ctx, "s1")
	require.NoError(t, err)
	require.Empty(t, open)
	require.Empty(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}))
	last, err := s.LastSeq(ctx, "s1")
	require.NoError(t, err)
	require.Zero(t, last)
}

func testFields(t *testing.T, s artifact.Store) {
	no := false
	e := finalEntry(1, "/a", "/dir/b")
	e.Who = session.Attribution{
		Sureness: session.Ambiguous, Source: session.SourceWindow, ToolUseID: "ü 1", ExecutionID: "e1",
		DeclaredToolUseID: "other", Candidates: []string{"x", "y"}, Artifact: &no, Late: true,
	}
	e.MimeType, e.Version, e.OpenAtEnd = "text/plain; charset=utf-8", 3, true
	e.Reason, e.Removed = "own attribute", true
	e.DerivedFrom, e.LostReason = "01ARZ3NDEKTSV4RRFFQ69G0000", "gone before it was looked at"
	e.File = change.FileID{Dev: 1<<64 - 1, Ino: 1<<64 - 1, Birth: -1}
	e.Stamp = change.Stamp{Size: 1 << 62, Mtime: -5, Ctime: 1<<63 - 1}
	put(t, s, e)

	got := get(t, s, e.ID)
	require.True(t, e.CreatedAt.Equal(got.CreatedAt))
	require.True(t, e.FinalAt.Equal(got.FinalAt))
	got.CreatedAt, got.FinalAt = e.CreatedAt, e.FinalAt
	require.Equal(t, e, got)
}

func testReplace(t *testing.T, s artifact.Store) {
	e := entry(1, "/a")
	put(t, s, e)
	e.Names, e.Stamp.Size = []string{"/b"}, 99
	put(t, s, e)
	got := get(t, s, e.ID)
	require.Equal(t, "/b", got.Path())
	require.Equal(t, int64(99), got.Stamp.Size)
	require.Len(t, openNames(t, s), 1)
}

func testCopy(t *testing.T, s artifact.Store) {
	e := entry(1, "/a")
	put(t, s, e)
	e.Names[0] = "/changed"
	got := get(t, s, e.ID)
	require.Equal(t, "/a", got.Path())
	got.Names[0] = "/changed"
	require.Equal(t, "/a", get(t, s, e.ID).Path())
}

func testByteNames(t *testing.T, s artifact.Store) {
	const name = "/caf\xe9/\xff\x01\n\u2028\ufffd"
	put(t, s, entry(1, name), finalEntry(2, name))
	require.Equal(t, [][]string{{name}}, openNames(t, s))
	versions, err := s.Versions(context.Background(), "s1", name)
	require.NoError(t, err)
	require.Len(t, versions, 1)
	require.Equal(t, name, versions[0].Path())
	require.NoError(t, s.Apply(context.Background(), []artifact.Mutation{rename("/caf\xe9", "/\xfe")}))
	require.Equal(t, [][]string{{"/\xfe/\xff\x01\n\u2028\ufffd"}}, openNames(t, s))
}

func testDelete(t *testing.T, s artifact.Store) {
	ctx := context.Background()
	open, final := entry(1, "/a"), finalEntry(2, "/b")
	put(t, s, open, final)
	key := func(e artifact.Entry) artifact.Mutation {
		return artifact.Mutation{Delete: &artifact.EntryKey{SessionID: "s1", ID: e.ID}}
	}
	require.NoError(t, s.Apply(ctx, []artifact.Mutation{key(open), key(final), key(open)}))
	for _, e := range []artifact.Entry{open, final} {
		_, err := s.Entry(ctx, e.ID)
		require.ErrorIs(t, err, session.ErrNotFound)
	}
	require.Empty(t, openNames(t, s))
	require.Empty(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}))
	versions, err := s.Versions(ctx, "s1", "/b")
	require.NoError(t, err)
	require.Empty(t, versions)
	of, err := s.EntriesOf(ctx, "s1", final.File)
	require.NoError(t, err)
	require.Empty(t, of)
}

func testOpenOrder(t *testing.T, s artifact.Store) {
	put(t, s, entry(3, "/c"), entry(1, "/a"), finalEntry(4, "/d"), entry(2))
	open, err := s.OpenEntries(context.Background(), "s1")
	require.NoError(t, err)
	require.Equal(t, []string{entry(1).ID, entry(2).ID, entry(3).ID}, ids(open))
	require.Empty(t, open[1].Path())
}

func testBecomesFinal(t *testing.T, s artifact.Store) {
	put(t, s, entry(1, "/a"))
	require.Empty(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}))
	put(t, s, finalEntry(1, "/a"))
	require.Empty(t, openNames(t, s))
	require.Len(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}), 1)

	withdrawn := finalEntry(1, "/a")
	withdrawn.Artifact = false
	put(t, s, withdrawn)
	require.Empty(t, entriesOf(t, s, artifact.Query{SessionID: "s1", ArtifactsOnly: true}))
	require.Len(t, entriesOf(t, s, artifact.Query{SessionID: "s1"}), 1)
}

func testLastSeq(t *testing.T, s artifact.Store) {
	ctx := context.Background()
	put(t, s, finalEntry(7, "/a"), finalEntry(3, "/b"))
	last, err := s.LastSeq(ctx, "s1")
	require.NoError(t, err)
	require.Equal(t, uint64(7), last)

	gone := artifact.EntryKey{SessionID: "s1", ID: finalEntry(7).ID}
	require.NoError(t, s.Apply(ctx, []artifact.Mutation{{Delete: &gone}}))
	last, err = s.LastSeq(ctx, "s1")
	require.NoError(t, err)
	require.Equal(t, uint64(7), last, "a number is never given twice")
}

func testSessions(t *testing.T, s artifact.Store) {
	ctx := context.Background()
	other, otherOpen := finalEntry(1, "/d/a"), entry(3, "/d/b")
	other.SessionID, otherOpen.SessionID = "s2", "s2"
	put(t, s, other, otherOpen, finalEntry(2, "/d/a"), entry(4, "/d/b"))
	require.NoError(t, s.Apply(ctx, []artifact.Mutation{rename("/d", "/e"),
		{Delete: &artifact.EntryKey{SessionID: "s1", ID: other.ID}}}))

	require.Equal(t, []string{finalEntry(2).ID}, entriesOf(t, s, artifact.Query{SessionID: "s1"}))
	require.Equal(t, []string{other.ID}, entriesOf(t, s, artifact.Query{SessionID: "s2"}))
	require.Equal(t, "/d/b", get(t, s, otherOpen.ID).Path())
	require.Equal(t, [][]string{{"/e/b"}}, openNames(t, s))
	last, err := s.LastSeq(ctx, "s2")
	require.NoError(t, err)
	require.Equal(t, uint64(1), last)
}
