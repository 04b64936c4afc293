package change

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestEscapePath(t *testing.T) {
	for _, row := range []struct {
		path, shown string
		escaped     bool
	}{
		{"/a/b", "/a/b", false},
		{`/back\slash`, `/back\slash`, false},
		{"/ü\u202e", "/ü\u202e", false},
		{"/a\xffb", `/a\xffb`, true},
		{"/\\\xfe", `/\\\xfe`, true},
		{"/ü\xc3", `/ü\xc3`, true},
		{"/�\x80", "/�\\x80", true},
	} {
		got, escaped := EscapePath(row.path)
		require.Equal(t, row.shown, got)
		require.Equal(t, row.escaped, escaped)
		back, err := UnescapePath(got, escaped)
		require.NoError(t, err)
		require.Equal(t, row.path, back)
	}
}

func TestUnescapePathRefuses(t *testing.T) {
	for _, s := range []string{`/a\`, `/a\x`, `/a\x1`, `/a\xzz`, `/a\n`, `/a\x+1`} {
		_, err := UnescapePath(s, true)
		require.ErrorIs(t, err, session.ErrInvalid, s)
	}
}

func FuzzEscapePath(f *testing.F) {
	f.Add("/a\xff\\b")
	f.Add("/plain")
	f.Fuzz(func(t *testing.T, p string) {
		s, escaped := EscapePath(p)
		require.True(t, utf8.ValidString(s))
		back, err := UnescapePath(s, escaped)
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}
