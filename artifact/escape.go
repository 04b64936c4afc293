package artifact

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"aimon.at/vfsd/session"
)

const hexDigits = "0123456789abcdef"

// EscapePath gives a path as JSON can carry it. A path that is valid UTF-8 is returned as it is,
// with escaped false. In any other every byte that is not part of valid UTF-8 is \xNN (two lower
// case hex digits) and every backslash is doubled, with escaped true, which stands beside it in
// JSON as "pathEscaped": true. UnescapePath is the way back.
func EscapePath(p string) (s string, escaped bool) {
	if utf8.ValidString(p) {
		return p, false
	}
	return escape(p), true
}

// ShownNames returns the path and the file name as they stand in JSON, both escaped or none.
func ShownNames(path string) (shown, fileName string, escaped bool) {
	shown, escaped = EscapePath(path)
	fileName = FileName(path)
	if escaped {
		fileName = escape(fileName)
	}
	return shown, fileName, escaped
}

func escape(p string) string {
	var b strings.Builder
	b.Grow(len(p) + 16)
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[p[i]>>4])
			b.WriteByte(hexDigits[p[i]&0xf])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(p[i : i+n])
		}
		i += n
	}
	return b.String()
}

// UnescapePath turns the escaped form back into the bytes. It is session.ErrInvalid where a
// backslash is followed by neither a backslash nor xNN.
func UnescapePath(s string) (string, error) {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		c, n, ok := unescapeOne(s[i+1:])
		if !ok {
			return "", fmt.Errorf("%w escaped path %.80q: at byte %d a backslash begins neither \\\\ nor \\xNN", session.ErrInvalid, s, i)
		}
		b.WriteByte(c)
		i += n
	}
	return b.String(), nil
}

// unescapeOne reads what follows a backslash: the byte that is meant and how many it took.
func unescapeOne(s string) (c byte, n int, ok bool) {
	switch {
	case len(s) >= 1 && s[0] == '\\':
		return '\\', 1, true
	case len(s) >= 3 && s[0] == 'x':
		hi, lo := unhex(s[1]), unhex(s[2])
		return hi<<4 | lo, 3, hi < 16 && lo < 16
	}
	return 0, 0, false
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}
