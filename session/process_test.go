package session

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadProcess(t *testing.T) {
	p, uid, err := ReadProcess(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), p.PID)
	require.NotZero(t, p.Start)
	require.Equal(t, uint32(os.Geteuid()), uid)
	again, _, err := ReadProcess(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, p, again)
	for _, pid := range []int{0, -1, 1 << 30} {
		_, _, err := ReadProcess(pid)
		require.ErrorIs(t, err, ErrNotFound)
	}
}

func TestStartTime(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for _, c := range []struct {
		name, line string
		want       uint64
		fails      bool
	}{
		{"plain", "1 (sh)" + rest, 4711, false},
		{"a name like a line", "1 (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 666 (b\n))" + rest, 4711, false},
		{"empty", "", 0, true},
		{"no parenthesis", "1 2 3", 0, true},
		{"cut", "1 (sh) S 1 2", 0, true},
		{"no number", "1 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := startTime([]byte(c.line))
			require.Equal(t, c.fails, err != nil)
			require.Equal(t, c.want, got)
		})
	}
}

func FuzzStartTime(f *testing.F) {
	f.Add([]byte("1 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"))
	f.Fuzz(func(t *testing.T, line []byte) { _, _ = startTime(line) })
}
