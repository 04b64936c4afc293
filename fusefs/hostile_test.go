package fusefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const raceFor = 2 * time.Second

// TestHostileTree exchanges directories and files of the source for links to outside while every
// operation is carried out on them through the mount. A link leads to the outside from the source
// only: seen from the mount its text leads nowhere.
func TestHostileTree(t *testing.T) {
	deep := func(s *spec) {
		s.Config.CacheTimeout = 0
		s.Config.Mountpoint = filepath.Join(filepath.Dir(s.Source), "deeper", "mnt")
		require.NoError(t, os.MkdirAll(s.Config.Mountpoint, 0o755))
	}
	inModes(t, deep, func(t *testing.T, m *mounted) {
		outside := filepath.Join(filepath.Dir(m.source), "outside")
		for _, d := range []string{outside, filepath.Join(outside, "sub"), m.below("dir"), m.below("dir", "sub")} {
			require.NoError(t, os.Mkdir(d, 0o755))
		}
		for _, n := range []string{"file", "sub/file", "victim"} {
			require.NoError(t, os.WriteFile(filepath.Join(outside, n), []byte("SECRET"), 0o644))
			require.NoError(t, os.WriteFile(m.below("dir", n), []byte("inside"), 0o644))
		}
		require.NoError(t, os.WriteFile(m.below("plain"), []byte("inside"), 0o644))
		require.NoError(t, os.Symlink("../outside", m.below("link")))
		require.NoError(t, os.Symlink("../outside/file", m.below("filelink")))
		before := snapshot(t, outside)
		watch := time.AfterFunc(raceFor+patience, m.abort)
		defer watch.Stop()
		race(t, m)
		require.Equal(t, before, snapshot(t, outside))
	})
}

// race runs the exchanges and the operations side by side.
func race(t *testing.T, m *mounted) {
	end := time.Now().Add(raceFor)
	var wg sync.WaitGroup
	for _, pair := range [][2]string{{"dir", "link"}, {"plain", "filelink"}} {
		wg.Go(func() {
			for time.Now().Before(end) {
				unix.Renameat2(unix.AT_FDCWD, m.below(pair[0]), unix.AT_FDCWD, m.below(pair[1]), unix.RENAME_EXCHANGE)
			}
		})
	}
	for i, attack := range attacks {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				attack(t, m.path, fmt.Sprintf("%d-%d", i, n%5))
			}
		})
	}
	wg.Wait()
}

// attacks do all that changes or reads, without minding whether it works.
var attacks = []func(t *testing.T, path func(...string) string, name string){
	func(t *testing.T, path func(...string) string, name string) {
		for _, p := range []string{path("dir/file"), path("dir/sub/file"), path("plain")} {
			b, _ := os.ReadFile(p)
			if strings.Contains(string(b), "SECRET") {
				t.Errorf("%s was read from outside", p)
			}
		}
	},
	func(_ *testing.T, path func(...string) string, name string) {
		os.WriteFile(path("dir", name), []byte("made"), 0o644)
		os.WriteFile(path("dir/file"), []byte("written"), 0o644)
		os.WriteFile(path("plain"), []byte("written"), 0o644)
		os.Remove(path("dir", name))
	},
	func(_ *testing.T, path func(...string) string, name string) {
		os.Mkdir(path("dir", name), 0o755)
		os.Symlink("x", path("dir/sub", name))
		unix.Mkfifo(path("dir/sub", name+"p"), 0o644)
		os.Remove(path("dir/sub", name))
		os.Remove(path("dir/sub", name+"p"))
		os.Remove(path("dir", name))
	},
	func(_ *testing.T, path func(...string) string, name string) {
		os.Chmod(path("dir/file"), 0o600)
		os.Chmod(path("plain"), 0o600)
		os.Chown(path("dir/sub/file"), 7, 7)
		os.Truncate(path("dir/victim"), 1)
		os.Chtimes(path("dir/sub"), time.Unix(1, 0), time.Unix(1, 0))
		unix.Setxattr(path("dir/file"), "user.x", []byte("x"), 0)
		unix.Setxattr(path("dir/sub"), "user.x", []byte("x"), 0)
	},
	func(_ *testing.T, path func(...string) string, name string) {
		os.Rename(path("dir/victim"), path("dir/sub/victim"))
		os.Rename(path("dir/sub/victim"), path("dir/victim"))
		os.Link(path("dir/file"), path("dir/sub", name+"l"))
		os.Remove(path("dir/sub", name+"l"))
		if fd, err := unix.Open(path("dir"), unix.O_TMPFILE|unix.O_RDWR, 0o600); err == nil {
			unix.Close(fd)
		}
	},
	func(t *testing.T, path func(...string) string, name string) {
		if entries, err := os.ReadDir(path("dir")); err == nil {
			for _, e := range entries {
				e.Info()
			}
		}
		os.Readlink(path("filelink"))
		unix.Listxattr(path("dir/sub/file"), make([]byte, 100))
	},
}

// snapshot is everything that can be seen of a tree.
func snapshot(t *testing.T, dir string) []string {
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		list := make([]byte, 1000)
		n, err := unix.Llistxattr(p, list)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
		var b []byte
		if e.Type().IsRegular() {
			b, err = os.ReadFile(p)
		}
		out = append(out, fmt.Sprintf("%s mode %o uid %d nlink %d mtime %v ctime %v xattrs %q %q", p, st.Mode, st.Uid, st.Nlink, st.Mtim, st.Ctim, list[:max(n, 0)], b))
		return err
	}))
	return out
}
