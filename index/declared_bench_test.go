package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

// BenchmarkDeclared is what a write in open(2) waits for.
func BenchmarkDeclared(b *testing.B) {
	x, err := Open(b.TempDir(), quiet())
	require.NoError(b, err)
	defer x.Close()
	c, err := session.New(x, quiet())
	require.NoError(b, err)
	_, err = c.OpenSession(b.Context(), session.Session{ID: "known"})
	require.NoError(b, err)
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			u, err := c.Declared("known", session.Declaration{ToolUseID: "t"})
			require.NoError(b, err)
			_, err = c.CollectIn("known", "", &u)
			require.NoError(b, err)
		}
	})
	n := 0
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			id := fmt.Sprint("s", n/5000) // a session takes 10,000
			if n%5000 == 0 {
				_, err := c.OpenSession(b.Context(), session.Session{ID: id})
				require.NoError(b, err)
			}
			_, err := c.Declared(id, session.Declaration{ToolUseID: fmt.Sprint("n", n)})
			require.NoError(b, err)
			n++
		}
	})
}
