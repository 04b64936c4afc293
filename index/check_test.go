package index

import (
	"context"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

func final(id string, seq uint64, names ...string) artifact.Entry {
	return artifact.Entry{
		ID: id, SessionID: "s1", Names: names, Final: true, Seq: seq, Artifact: true, CreatedAt: began,
		Who:  session.Attribution{Sureness: session.Exact, ToolUseID: "t1", ExecutionID: "e1"},
		File: change.FileID{Dev: 1, Ino: seq},
	}
}

func opened(id string, names ...string) artifact.Entry {
	e := final(id, 0, names...)
	e.Final = false
	return e
}

func apply(t *testing.T, x *Index, entries ...artifact.Entry) {
	t.Helper()
	var batch []artifact.Mutation
	for i := range entries {
		batch = append(batch, artifact.Mutation{Put: &entries[i]})
	}
	require.NoError(t, x.Apply(context.Background(), batch))
}

// sample puts one row of every kind.
func sample(t *testing.T, x *Index) {
	t.Helper()
	seed(t, x)
	apply(t, x, final("n1", 1, "/d/a"), final("n2", 2, "/d/b"), opened("o1", "/d/c"))
	require.NoError(t, x.Apply(context.Background(), []artifact.Mutation{{RenameDir: &artifact.RenameDir{SessionID: "s1", From: "/d", To: "/e"}}}))
	require.NoError(t, x.PutToken(context.Background(), artifact.Token{Hash: [32]byte{1}, ArtifactID: "n1", SessionID: "s1", CreatedAt: began, ExpiresAt: began}))
}

func TestCheckFindsNothingInASoundIndex(t *testing.T) {
	x := fresh(t)
	sample(t, x)
	kinds := map[byte]bool{}
	require.NoError(t, x.db.View(func(tx *badger.Txn) error {
		return scan(tx, nil, nil, func(k []byte, _ *badger.Item) (bool, error) { kinds[k[0]] = true; return true, nil })
	}))
	require.Len(t, kinds, len(primaryKinds+secondaryKinds+otherKinds), "the sample has a row of every kind")
}

func TestCheckFindsDamage(t *testing.T) {
	drop := func(k key) func(tx *badger.Txn) error {
		return func(tx *badger.Txn) error { return tx.Delete(k) }
	}
	write := func(k key, value string) func(tx *badger.Txn) error {
		return func(tx *badger.Txn) error { return tx.Set(k, []byte(value)) }
	}
	for _, c := range []struct {
		name   string
		damage func(tx *badger.Txn) error
		want   string
	}{
		{"a primary row is gone", drop(entryKey("n2")), "leads to row n"},
		{"a primary row cannot be read", write(entryKey("n2"), "\x01{"), "index is damaged"},
		{"a primary row of another codec", write(toolUseKey("s1", "t1"), "\x07{}"), "unknown codec"},
		{"an empty row", write(sessionKey("s1"), ""), "unknown codec"},
		{"a row under another's key", write(entryKey("n2"), "\x01{\"id\":\"n3\"}"), "holds another row"},
		{"a secondary row is gone", drop(under(kindPath, "s1").path("/d/a").num(1).text("n1")), "is missing for"},
		{"a secondary row is stray", write(under(kindArtifact, "s1").num(9).text("n1"), string(entryKey("n1"))), "does not want it"},
		{"a secondary row leads elsewhere", write(under(kindFinal, "s1").num(1).text("n1"), string(entryKey("n2"))), "instead of"},
		{"a secondary row leads nowhere", write(under(kindFinal, "s1").num(9).text("n9"), ""), "leads nowhere"},
		{"a secondary row leads to no primary row", write(under(kindFinal, "s1").num(9).text("n9"), "zz"), "no primary row"},
		{"an execution is gone", drop(executionKey("s1", "e1")), `refers to execution "e1"`},
		{"a tool use is gone", drop(toolUseKey("s1", "t1")), `refers to tool use "t1"`},
		{"a session is gone", drop(sessionKey("s1")), `refers to session "s1"`},
		{"a token's artifact is gone", drop(entryKey("n1")), `refers to artifact "n1"`},
		{"the counter is behind", write(lastSeqKey("s1"), "\x011"), "above the session's last one"},
		{"the counter is gone", drop(lastSeqKey("s1")), "above the session's last one"},
		{"the rename log's counter is behind", write(under(kindOpen, "s1").num(7).text("o1"), string(entryKey("o1"))), "does not want it"},
		{"a rename cannot be read", write(under(kindRename, "s1").num(1), "x"), "unknown codec"},
		{"a rename of no session", write(under(kindRename, "s9").num(1), "\x01{}"), "a session that is missing"},
		{"a key of no kind", write(newKey('y').text("a"), "x"), "no known kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := open(t, t.TempDir())
			sample(t, x)
			requireSound(t, x)
			require.NoError(t, x.db.Update(c.damage))
			require.Contains(t, joined(findings(t, x)), c.want)
		})
	}
}

func TestCheckFindsASequenceNumberGivenTwice(t *testing.T) {
	x := open(t, t.TempDir())
	seed(t, x)
	apply(t, x, final("n1", 1, "/a"), final("n2", 1, "/b"))
	require.Contains(t, joined(findings(t, x)), "given twice")
}

func TestDamagedRowIsWrittenOver(t *testing.T) {
	x := open(t, t.TempDir())
	seed(t, x)
	apply(t, x, final("n1", 1, "/a"))
	require.NoError(t, x.db.Update(func(tx *badger.Txn) error { return tx.Set(entryKey("n1"), []byte("?")) }))
	_, err := x.Entry(context.Background(), "n1")
	require.ErrorIs(t, err, ErrCorrupt)
	apply(t, x, final("n1", 1, "/a"))
	requireSound(t, x)
}
