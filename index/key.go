package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"
)

// The kinds of rows: the first byte of every key. The package comment is the table.
const (
	kindSession   = 's'
	kindExecution = 'e'
	kindToolUse   = 't'
	kindEntry     = 'n'
	kindToken     = 'k'

	kindSessionTime       = 'S'
	kindExecutionTime     = 'E'
	kindExecutionOpen     = 'V'
	kindToolUseTime       = 'T'
	kindToolUseOpen       = 'U'
	kindOpen              = 'o'
	kindFinal             = 'f'
	kindFinalExecution    = 'x'
	kindFinalToolUse      = 'u'
	kindArtifact          = 'a'
	kindArtifactExecution = 'X'
	kindArtifactToolUse   = 'A'
	kindInode             = 'i'
	kindPath              = 'p'
	kindBelow             = 'd'
	kindTokenArtifact     = 'K'
	kindTokenSession      = 'L'
	kindTokenExpiry       = 'M'

	kindRename     = 'r'
	kindGeneration = 'g'
	kindLastSeq    = 'q'
	kindScheme     = '!'
)

const (
	primaryKinds   = "setnk"
	secondaryKinds = "SEVTUofxuaXAipdKLM"
	otherKinds     = "rgq!"
)

// hashed is the length byte of a text part that is given by its hash.
const hashed = 255

// key is a key or the prefix of keys under construction. Each method appends one part.
type key []byte

func newKey(kind byte) key { return append(make(key, 0, 96), kind) }

// text appends an id. Bytes that are not UTF-8 are replaced one by one, as encoding/json does with
// the id in the row, so that a key can be computed again from its row.
func (k key) text(s string) key {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if len(s) >= hashed {
		sum := sha256.Sum256([]byte(s))
		return append(append(k, hashed), sum[:]...)
	}
	return append(append(k, byte(len(s))), s...)
}

// textLen returns how many bytes the text part at the beginning of k takes.
func textLen(k []byte) int {
	switch {
	case len(k) == 0:
		return 0
	case k[0] == hashed:
		return 1 + sha256.Size
	}
	return 1 + int(k[0])
}

func (k key) num(n uint64) key { return binary.BigEndian.AppendUint64(k, n) }

func (k key) time(t time.Time) key {
	// The sign bit is turned so that times before 1970 come first.
	k = k.num(uint64(t.Unix()) ^ 1<<63)
	return binary.BigEndian.AppendUint32(k, uint32(t.Nanosecond()))
}

// pathHash is how many bytes of a path's hash stand in a key.
const pathHash = 16

func (k key) path(p string) key {
	sum := sha256.Sum256([]byte(p))
	return append(k, sum[:pathHash]...)
}

// most is how many bytes of a path stand in a key in clear.
const most = 1000

// clear appends the beginning of a path as it is, so that all below a directory is one range.
func (k key) clear(p string) key { return append(k, p[:min(most, len(p))]...) }

func (k key) hash(h [32]byte) key { return append(k, h[:]...) }

// fixed appends other's bytes as they are, for keys that share a beginning.
func (k key) fixed(other key) key { return append(k, other...) }

// under returns the prefix of the rows of kind below the session.
func under(kind byte, sessionID string) key { return newKey(kind).text(sessionID) }

// scan calls visit for each row whose key begins with prefix, from prefix+from on, until it returns
// false. The key handed to visit is a copy.
func scan(tx *badger.Txn, prefix, from []byte, visit func(k []byte, item *badger.Item) (bool, error)) error {
	it := tx.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Seek(append(bytes.Clone(prefix), from...)); it.Valid(); it.Next() {
		more, err := visit(it.Item().KeyCopy(nil), it.Item())
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// describe names a key in an error.
func describe(k []byte) string {
	if len(k) == 0 {
		return "row without key"
	}
	return fmt.Sprintf("row %c %.120q", k[0], k[1:])
}
