package server

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

func mode(t *testing.T, path string) fs.FileMode {
	st, err := os.Lstat(path)
	require.NoError(t, err)
	return st.Mode().Perm()
}

func TestListenModes(t *testing.T) {
	for name, row := range map[string]struct {
		everybody   bool
		dir, socket fs.FileMode
	}{
		"root's daemon": {true, 0o755, 0o666},
		"a user's":      {false, 0o700, 0o600},
	} {
		for _, mask := range []int{0, 0o022, 0o077} {
			t.Run(name, func(t *testing.T) {
				defer unix.Umask(unix.Umask(mask))
				path := filepath.Join(t.TempDir(), "run", "vfsd", "vfsd.sock")
				l, err := listen(path, row.everybody)
				require.NoError(t, err)
				require.Equal(t, row.dir, mode(t, filepath.Dir(path)))
				require.Equal(t, row.socket, mode(t, path))
				require.Equal(t, path, l.Addr().String())
				names, err := os.ReadDir(filepath.Dir(path))
				require.NoError(t, err)
				require.Len(t, names, 1, "nothing beside the socket stays")
				require.NoError(t, l.Close())
				require.NoFileExists(t, path)
			})
		}
	}
}

func TestListenLeavesTheModeOfADirectoryThatExists(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750))
	l, err := listen(filepath.Join(dir, "s"), true)
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, fs.FileMode(0o750), mode(t, dir))
}

func TestListenRefusesALiveDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(path)
	require.ErrorIs(t, err, session.ErrConflict)
	require.FileExists(t, path)
}

func TestListenReplacesTheSocketOfADeadOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := Listen(path)
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	c.Close()
}

func TestListenKeepsWhatIsNoSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := Listen(path)
	require.ErrorIs(t, err, session.ErrConflict)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	_, err = Listen(link)
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestListenPathLength(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("x", maxAddr-len(dir)-1))
	l, err := Listen(long)
	require.NoError(t, err, "107 bytes fit")
	defer l.Close()
	c, err := net.Dial("unix", long)
	require.NoError(t, err)
	c.Close()
	_, err = Listen(long + "x")
	require.ErrorIs(t, err, session.ErrInvalid)
}

func TestListenRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	dead.Close()

	const daemons = 16
	ls, errs := make([]net.Listener, daemons), make([]error, daemons)
	var wg sync.WaitGroup
	for i := range daemons {
		wg.Go(func() { ls[i], errs[i] = Listen(path) })
	}
	wg.Wait()
	won := 0
	for i := range daemons {
		if errs[i] == nil {
			won++
			defer ls[i].Close()
			continue
		}
		require.ErrorIs(t, errs[i], session.ErrConflict)
	}
	require.Equal(t, 1, won)
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	c.Close()
}

func TestCloseLeavesTheSocketOfASuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := Listen(path)
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, first.Close())
	require.FileExists(t, path)
}
