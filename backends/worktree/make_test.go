package worktree_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aimon.at/vfsd/backends/worktree"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestOwnerFromTheStart: whoever owns the source exchanges names while something is made there, and must
// not come to own anything that is root's.
func TestOwnerFromTheStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("needs root to make files of others")
		return
	}
	dir, tree := open(t)
	at, owner := tree.Root().FD(), worktree.Owner{UID: 1234, GID: 1235}
	roots := filepath.Join(dir, "roots")
	require.NoError(t, os.WriteFile(roots, nil, 0o600))
	end := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, roots, unix.AT_FDCWD, filepath.Join(dir, "made"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	given := 0
	for range 500 {
		tree.Symlink(at, "made", "x", owner)
		for _, name := range []string{"roots", "made"} {
			var st unix.Stat_t
			if unix.Lstat(filepath.Join(dir, name), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Uid != 0 {
				given++
			}
		}
		os.Remove(filepath.Join(dir, "made"))
		os.Remove(roots)
		os.WriteFile(roots, nil, 0o600)
	}
	close(end)
	<-done
	require.Zero(t, given)
}

// TestMade: what is made has its owner and mode, and the thread is itself again afterwards.
func TestMade(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("needs root to make files of others")
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unmask := unix.Umask(0)
	defer unix.Umask(unmask)
	dir, tree := open(t)
	before, err := os.ReadFile("/proc/thread-self/status")
	require.NoError(t, err)
	at, owner := tree.Root().FD(), worktree.Owner{UID: 1234, GID: 1235}
	require.NoError(t, os.Chmod(dir, 0o700), "the owner itself could make nothing here")
	for name, row := range map[string]struct {
		make func(name string) error
		mode uint32
	}{
		"dir":     {func(n string) error { return tree.Mkdir(at, n, 0o1750, owner) }, unix.S_IFDIR | 0o1750},
		"file":    {func(n string) error { return tree.Mknod(at, n, unix.S_IFREG|0o4711, owner) }, unix.S_IFREG | 0o4711},
		"fifo":    {func(n string) error { return tree.Mknod(at, n, unix.S_IFIFO|0o2640, owner) }, unix.S_IFIFO | 0o2640},
		"socket":  {func(n string) error { return tree.Mknod(at, n, unix.S_IFSOCK|0o600, owner) }, unix.S_IFSOCK | 0o600},
		"symlink": {func(n string) error { return tree.Symlink(at, n, "x", owner) }, unix.S_IFLNK | 0o777},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, row.make(name))
			var st unix.Stat_t
			require.NoError(t, unix.Lstat(filepath.Join(dir, name), &st))
			require.Equal(t, owner, worktree.Owner{UID: st.Uid, GID: st.Gid})
			require.Equalf(t, row.mode, st.Mode, "%o", st.Mode)
			require.Equal(t, unix.EEXIST, row.make(name))
		})
	}
	require.Equal(t, unix.EPERM, tree.Mknod(at, "dev", unix.S_IFCHR|0o600, owner))
	require.NoError(t, tree.Mkdir(at, "here", 0o700, owner))
	require.NoError(t, tree.Mkdir(at, "group", 0o700, worktree.Owner{UID: 0, GID: 7}))
	after, err := os.ReadFile("/proc/thread-self/status")
	require.NoError(t, err)
	require.Equal(t, identity(before), identity(after))
}

// identity is what of a thread's status says who it is and what it may do.
func identity(status []byte) []string {
	var out []string
	for line := range strings.Lines(string(status)) {
		for _, field := range []string{"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:"} {
			if strings.HasPrefix(line, field) {
				out = append(out, line)
			}
		}
	}
	return out
}
