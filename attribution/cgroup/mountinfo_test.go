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

func TestHierarchies(t *testing.T) {
	list, err := hierarchies(strings.NewReader(hybrid))
	require.NoError(t, err)
	require.Equal(t, []mount{
		{root: "/a b", point: "/mnt/with blank"},
		{root: "/", point: "/sys/fs/cgroup/unified"},
	}, list)
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
