package fusefs

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openMany opens path(0), path(1), … until there are n or it fails.
func openMany(n int, flags int, path func(int) string) (fds []int, err error) {
	for i := range n {
		fd, err := unix.Open(path(i), flags|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func TestWhoOpensEverythingDoesNotTakeTheDaemonsLastDescriptor(t *testing.T) {
	inModes(t, func(s *spec) { s.FDs = 400 }, func(t *testing.T, m *mounted) {
		require.NoError(t, os.Mkdir(m.path("d"), 0o755))
		fds, err := openMany(1000, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, func(i int) string { return m.path(fmt.Sprint(i)) })
		require.Equal(t, unix.ENFILE, err)
		require.Greater(t, len(fds), 100)

		_, err = os.Lstat(m.path(fmt.Sprint(len(fds))))
		require.ErrorIs(t, err, os.ErrNotExist, "the refused file must not be left behind")
		for i, fd := range fds {
			_, err := unix.Write(fd, []byte("x"))
			require.NoError(t, err, i)
			require.NoError(t, unix.Fsync(fd), i)
		}
		require.NoError(t, os.Rename(m.path("0"), m.path("d", "0")))
		require.NoError(t, os.Remove(m.path("1")))
		require.NoError(t, os.Truncate(m.path("2"), 0))
		require.NoError(t, os.Chmod(m.path("3"), 0o600))

		closeAll(fds)
		require.Eventually(t, func() bool {
			fd, err := unix.Open(m.path("2"), unix.O_RDWR, 0)
			unix.Close(fd)
			return err == nil
		}, patience, patience/1000)
	})
}

func TestAFileOpenManyTimesCostsNoDescriptorEach(t *testing.T) {
	inModes(t, func(s *spec) { s.FDs = 300 }, func(t *testing.T, m *mounted) {
		for _, flags := range []int{unix.O_RDWR | unix.O_CREAT, unix.O_RDONLY, unix.O_WRONLY} {
			fds, err := openMany(600, flags, func(int) string { return m.path("one") })
			defer closeAll(fds)
			require.NoError(t, err)
		}
	})
}
