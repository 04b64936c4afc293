package proc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	statLine   = "4242 (sh) S 17 4242 4242 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 17 1 0 0 0 0 0 25 26 27 28 29 30 31 0\n"
	statusText = "Name:\tsh\nTgid:\t4242\nNStgid:\t4242\t7\t1\nPPid:\t17\n"
)

func TestParseStat(t *testing.T) {
	want := Stat{PID: 4242, State: 'S', PPID: 17, ExitSignal: 17, Start: 987654, EnvEnd: 31}
	for _, comm := range []string{"sh", "a b", ") R 1 (", "x) S 1 1 1\n", "\n\n", "((", "))", ""} {
		got, err := ParseStat([]byte(strings.Replace(statLine, "(sh)", "("+comm+")", 1)))
		require.NoError(t, err, "%q", comm)
		require.Equal(t, want, got, "%q", comm)
	}
	for _, bad := range []string{"", "1", "1 (sh", "1 (sh) S", ")(", "x" + statLine, strings.Replace(statLine, " 987654 ", " -1 ", 1)} {
		_, err := ParseStat([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, "%q", bad)
	}
}

func TestParseStatus(t *testing.T) {
	tgid, ns, err := ParseStatus([]byte(statusText))
	require.NoError(t, err)
	require.Equal(t, 4242, tgid)
	require.Equal(t, []int{4242, 7, 1}, ns)
	for _, bad := range []string{"", "Tgid:\t1\n", "Tgid:\tx\nNStgid:\t1\n", "Tgid:\t1\nNStgid:\tx\n", "Tgid:\t1\nNStgid:\n"} {
		_, _, err := ParseStatus([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, "%q", bad)
	}
}

func TestParseCgroup(t *testing.T) {
	for _, c := range []struct {
		content, path string
		ok            bool
	}{
		{"0::/\n", "/", true},
		{"9:name=systemd:/a\n4:memory:/b\n0::/user.slice/x y\n", "/user.slice/x y", true},
		{"0::/../other\n", "/../other", true},
		{"0::/last", "/last", true},
		{"1:cpu:/a\n", "", false},
		{"10::/a\n", "", false},
		{"0:cpu:/a\n", "", false},
		{"", "", false},
	} {
		path, ok := ParseCgroup([]byte(c.content))
		require.Equal(t, c.path, path, "%q", c.content)
		require.Equal(t, c.ok, ok, "%q", c.content)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 () R 1 () S 2 3"))
	f.Add([]byte("1 (\n) R 1 ("))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseStat(b); err == nil {
			require.Positive(t, s.PID)
			require.GreaterOrEqual(t, s.PPID, 0)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(statusText))
	f.Add([]byte("Tgid:\nNStgid:\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tgid, ns, err := ParseStatus(b); err == nil {
			require.Positive(t, tgid)
			require.NotEmpty(t, ns)
		}
	})
}

func FuzzParseCgroup(f *testing.F) {
	f.Add([]byte("9:name=systemd:/\n0::/a/b\n"))
	f.Add([]byte("0::/"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path, ok := ParseCgroup(b)
		require.Equal(t, ok, strings.HasPrefix(path, "/"))
		require.NotContains(t, path, "\n")
	})
}
