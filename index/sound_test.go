package index

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// findings runs Check and leaves out the lines that have one of expected in them.
func findings(t *testing.T, x *Index, expected ...string) []string {
	t.Helper()
	var lines []string
	require.NoError(t, x.Check(context.Background(), func(line string) {
		for _, e := range expected {
			if strings.Contains(line, e) {
				return
			}
		}
		lines = append(lines, line)
	}))
	return lines
}

func requireSound(t *testing.T, x *Index, expected ...string) {
	t.Helper()
	require.Empty(t, findings(t, x, expected...))
}

func joined(lines []string) string { return strings.Join(lines, "\n") }
