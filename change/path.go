package change

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"aimon.at/vfsd/session"
)

// EscapePath makes a path of any bytes fit for JSON. Valid UTF-8 comes back as it is. Otherwise
// escaped is true, each invalid byte is written \xNN and each backslash \\.
func EscapePath(p string) (s string, escaped bool) {
	if utf8.ValidString(p) {
		return p, false
	}
	return Escape(p), true
}

// Escape writes each invalid byte of a part of a path as \xNN and each backslash as \\, whether or
// not that is needed: for a name that stands beside an escaped path.
func Escape(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, p[i])
		case r == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(p[i : i+n])
		}
		i += n
	}
	return b.String()
}

// UnescapePath undoes EscapePath where escaped is true.
func UnescapePath(s string, escaped bool) (string, error) {
	if !escaped {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n, err := unescapeByte(s[i:])
		if err != nil {
			return "", fmt.Errorf("%w path %q: %v", session.ErrInvalid, s, err)
		}
		b.WriteByte(c)
		i += n
	}
	return b.String(), nil
}

func unescapeByte(s string) (c byte, n int, err error) {
	switch {
	case s[0] != '\\':
		return s[0], 1, nil
	case strings.HasPrefix(s, `\\`):
		return '\\', 2, nil
	case len(s) >= 4 && s[1] == 'x':
		v, err := strconv.ParseUint(s[2:4], 16, 8)
		return byte(v), 4, err
	}
	return 0, 0, fmt.Errorf(`a backslash is written \\ and a byte \xNN`)
}
