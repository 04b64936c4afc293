package cgroup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const hybrid = `30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
41 30 0:37 /a\040b /mnt/with\040blank rw shared:1 master:2 - cgroup2 none rw
`

func TestParseMountinfo(t *testing.T) {
	require.Equal(t, []mount{
		{root: "/a b", point: "/mnt/with blank"},
		{root: "/", point: "/sys/fs/cgroup/unified"},
	}, parseMountinfo(hybrid))
	for _, bad := range []string{"", "\n", "40 30 0:37 / /x rw - cgroup2x a rw", "40 30 / rw - cgroup2 a b", "- cgroup2 ", "40 30 0:37 a b rw - cgroup2 c rw"} {
		require.Empty(t, parseMountinfo(bad), "%q", bad)
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`a\040b`: "a b", `\134`: `\`, `\9`: `\9`, `\04`: `\04`, `\777`: `\777`, `a`: "a", `\`: `\`} {
		require.Equal(t, want, unescape(in), "%q", in)
	}
}

func TestRelative(t *testing.T) {
	for _, c := range []struct {
		root, path, rel string
		ok              bool
	}{
		{"/", "/", ".", true},
		{"/", "/a/b", "a/b", true},
		{"/a", "/a", ".", true},
		{"/a", "/a/b", "b", true},
		{"/a", "/ab", "", false},
		{"/a", "/", "", false},
		{"/", "x", "", false},
	} {
		rel, ok := mount{root: c.root}.relative(c.path)
		require.Equal(t, c.rel, rel, "%+v", c)
		require.Equal(t, c.ok, ok, "%+v", c)
	}
}

func TestName(t *testing.T) {
	n := name("s", "t")
	require.True(t, ours(n))
	require.NotEqual(t, n, name("st", ""))
	for _, other := range []string{"vfsd-", "vfsd-service", strings.ToUpper(n), n + "0", "x" + n} {
		require.False(t, ours(other), other)
	}
}

func FuzzParseMountinfo(f *testing.F) {
	f.Add(hybrid)
	f.Add(`1 2 3:4 /\ /\0 rw - cgroup2 x`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range parseMountinfo(s) {
			require.True(t, strings.HasPrefix(m.root, "/") && strings.HasPrefix(m.point, "/"))
			if rel, ok := m.relative(m.root); ok {
				require.Equal(t, ".", rel)
			}
		}
	})
}
