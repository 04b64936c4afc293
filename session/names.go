package session

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIDLen        = 128
	maxToolUseIDLen = 256
)

// CheckID reports whether id can name a session, execution or task: 1 to 128 characters of
// [A-Za-z0-9._:-], the first a letter, digit or underscore. what names the id in the error.
func CheckID(what, id string) error {
	if id == "" || len(id) > maxIDLen {
		return fmt.Errorf("%w %s id %.40q: it has %d characters, 1 to %d are allowed", ErrInvalid, what, id, len(id), maxIDLen)
	}
	for i := 0; i < len(id); i++ {
		if !idByte(id[i], i == 0) {
			return fmt.Errorf("%w %s id %q: use letters, digits and . _ : - only, and begin with a letter, digit or _", ErrInvalid, what, id)
		}
	}
	return nil
}

func idByte(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		return true
	case c == '.', c == ':', c == '-':
		return !first
	}
	return false
}

// CheckToolUseID reports whether id can name a tool use: 1 to 256 bytes of valid UTF-8 without
// control characters, otherwise as the model gave it.
func CheckToolUseID(id string) error {
	if id == "" || len(id) > maxToolUseIDLen {
		return fmt.Errorf("%w tool-use id %.40q: it has %d bytes, 1 to %d are allowed", ErrInvalid, id, len(id), maxToolUseIDLen)
	}
	if !utf8.ValidString(id) {
		return fmt.Errorf("%w tool-use id %q: it is not valid UTF-8", ErrInvalid, id)
	}
	// Encoders of JSON put U+FFFD where bytes are not UTF-8: two ids would have become one.
	if strings.ContainsRune(id, utf8.RuneError) {
		return fmt.Errorf("%w tool-use id %q: it contains U+FFFD, which stands for bytes that were lost", ErrInvalid, id)
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w tool-use id %q: it contains a control character", ErrInvalid, id)
		}
	}
	return nil
}
