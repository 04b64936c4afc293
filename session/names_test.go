package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckToolUseID(t *testing.T) {
	for id, fine := range map[string]bool{
		"toolu_01":                     true,
		"../../etc":                    true,
		" ":                            true,
		strings.Repeat("é", 128):       true,
		strings.Repeat("é", 128) + "x": false,
		"":                             false,
		"a\nb":                         false,
		"\x1b[31m":                     false,
		"\xff\xfe":                     false,
		"\ufffd\ufffd":                 false, // what JSON makes of the one before
	} {
		err := CheckToolUseID(id)
		if fine {
			require.NoError(t, err, "%q", id)
		} else {
			require.ErrorIs(t, err, ErrInvalid, "%q", id)
		}
	}
}
