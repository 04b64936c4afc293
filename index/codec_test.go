package index

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"aimon.at/vfsd/change"
)

// FuzzDecode feeds every decoder: whatever lies in a row, there is an error or a row whose keys can
// be made.
func FuzzDecode(f *testing.F) {
	for _, kind := range []byte(primaryKinds) {
		f.Add(kind, []byte("\x01{}"))
	}
	e := newEntryRow(final("n1", 1, "/caf\xe9"))
	raw, err := encode(e)
	require.NoError(f, err)
	f.Add(byte(kindEntry), raw)
	f.Add(byte(kindToken), []byte("\x01{\"hash\":[1,2,3]}"))
	f.Add(byte(kindSession), []byte("\x02{}"))
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		r := newRow(kind)
		if r == nil {
			return
		}
		if err := decode([]byte{kind}, raw, r); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		k := r.key()
		require.Equal(t, kind, k[0])
		for _, s := range append(r.secondary(), k) {
			require.Less(t, len(s), 65_000)
		}
		if e, ok := r.(*entryRow); ok {
			e.current(nil)
		}
	})
}

// TestTextPartsDelimitThemselves: no text is the beginning of another's range.
func TestTextPartsDelimitThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringN(250, 260, 400))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		ka, kb := newKey('x').text(a), newKey('x').text(b)
		require.Equal(t, a == b, bytes.HasPrefix(ka, kb))
		require.Equal(t, len(ka)-1, textLen(ka[1:]))
	})
}

func TestKeysKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, name), rapid.Int64Range(0, 1e9-1).Draw(t, name))
		}
		a, b := draw("a"), draw("b")
		require.Equal(t, a.Compare(b), bytes.Compare(key(nil).time(a), key(nil).time(b)))
		m, n := rapid.Uint64().Draw(t, "m"), rapid.Uint64().Draw(t, "n")
		require.Equal(t, m < n, bytes.Compare(key(nil).num(m), key(nil).num(n)) < 0)
	})
}

func TestLongKeys(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	e := final(long, 1, "/"+long)
	e.SessionID, e.Who.ToolUseID, e.Who.ExecutionID = long, long, long
	e.File = change.FileID{Dev: 1<<64 - 1, Ino: 1<<64 - 1, Birth: -1}
	for _, k := range newEntryRow(e).secondary() {
		require.Less(t, len(k), 300+most)
	}
	x := open(t, t.TempDir())
	apply(t, x, e)
	found, err := x.Versions(t.Context(), long, "/"+long)
	require.NoError(t, err)
	require.Len(t, found, 1)
}
