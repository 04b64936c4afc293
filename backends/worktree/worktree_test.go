package worktree_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// view is what a program that wires things makes of a tree.
type view struct{ *worktree.Direct }

func (v view) Open(path string) (artifact.File, error) {
	f, err := v.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (v view) Stat(path string) (change.FileID, change.Stamp, error) { return v.StatPath(path) }

var _ artifact.Tree = view{}

func open(t *testing.T) (string, *worktree.Direct) {
	dir := t.TempDir()
	tree, err := worktree.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { tree.Close() })
	return dir, tree
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	link := filepath.Join(dir, "reserved-link")
	require.NoError(t, os.Mkdir(link, 0o755))
	require.NoError(t, os.Symlink("/etc", filepath.Join(link, worktree.Reserved)))
	foreign := filepath.Join(dir, "reserved-file")
	require.NoError(t, os.Mkdir(foreign, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, worktree.Reserved), nil, 0o644))
	for _, source := range []string{filepath.Join(dir, "none"), file, link, foreign} {
		_, err := worktree.Open(source)
		require.ErrorIs(t, err, session.ErrInvalid, source)
		require.NotContains(t, err.Error(), "\n")
	}
	own := filepath.Join(dir, "own")
	require.NoError(t, os.MkdirAll(filepath.Join(own, worktree.Reserved), 0o700))
	tree, err := worktree.Open(own)
	require.NoError(t, err)
	require.NoError(t, tree.Close())
}

func TestOpenFile(t *testing.T) {
	dir, tree := open(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "d/e"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d/e/f"), []byte("content"), 0o644))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("d", filepath.Join(dir, "dirlink")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	f, err := tree.OpenFile("/d/e/f")
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	require.NoError(t, err)
	require.Equal(t, "content", string(b))
	id, stamp, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 7, stamp.Size)
	id2, stamp2, err := tree.StatPath("/d/e/f")
	require.NoError(t, err)
	require.Equal(t, id, id2)
	require.Equal(t, stamp, stamp2)
	for path, want := range map[string]error{
		"/none": fs.ErrNotExist, "/d/e/f/x": fs.ErrNotExist, "/dirlink/e/f": fs.ErrNotExist,
		"/link": fs.ErrInvalid, "/fifo": fs.ErrInvalid, "/d": fs.ErrInvalid, "/": fs.ErrInvalid,
		"/" + strings.Repeat("n", 300): fs.ErrNotExist,
	} {
		_, err := tree.OpenFile(path)
		require.ErrorIs(t, err, want, path)
		_, _, err = tree.StatPath(path)
		require.ErrorIs(t, err, want, path)
	}
	_, err = tree.OpenFile("/d/../d/e/f")
	require.Error(t, err)
}

func TestWritable(t *testing.T) {
	dir, tree := open(t)
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
	f, err := tree.OpenFile("/f")
	require.NoError(t, err)
	defer f.Close()
	require.False(t, f.Writable())
	reader, err := os.Open(path)
	require.NoError(t, err)
	require.False(t, f.Writable())
	reader.Close()
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.True(t, f.Writable())
	m, err := unix.Mmap(int(w.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	w.Close()
	require.True(t, f.Writable(), "a shared mapping can still write")
	require.NoError(t, unix.Munmap(m))
	require.False(t, f.Writable())
}

func TestIntent(t *testing.T) {
	dir, tree := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	for _, path := range []string{"/f", "/"} {
		v, err := tree.Intent(path)
		require.NoError(t, err)
		require.Nil(t, v)
		require.NoError(t, tree.SetIntent(path, []byte("true")))
		v, err = tree.Intent(path)
		require.NoError(t, err)
		require.Equal(t, "true", string(v))
		require.NoError(t, tree.SetIntent(path, nil))
		require.NoError(t, tree.SetIntent(path, nil))
		v, err = tree.Intent(path)
		require.NoError(t, err)
		require.Nil(t, v)
	}
	long := strings.Repeat("x", 1000)
	require.NoError(t, unix.Setxattr(filepath.Join(dir, "f"), worktree.IntentXattr, []byte(long), 0))
	v, err := tree.Intent("/f")
	require.NoError(t, err)
	require.Equal(t, long, string(v))
	_, err = tree.Intent("/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadRoot(t *testing.T) {
	dir, tree := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("12345"), 0o644))
	b, err := tree.ReadRoot("f", 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(b))
	_, err = tree.ReadRoot("f", 4)
	require.Error(t, err)
	_, err = tree.ReadRoot("none", 4)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLongPath(t *testing.T) {
	dir, tree := open(t)
	at, err := unix.Open(dir, unix.O_PATH, 0)
	require.NoError(t, err)
	name := strings.Repeat("n", 250)
	path := ""
	for range 40 {
		require.NoError(t, unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_PATH, 0)
		require.NoError(t, err)
		unix.Close(at)
		at = next
		path += "/" + name
	}
	fd, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_RDWR, 0o644)
	require.NoError(t, err)
	unix.Close(fd)
	unix.Close(at)
	_, _, err = tree.StatPath(path + "/f")
	require.NoError(t, err)
}

func TestMountsAreNotCrossed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("needs root to mount: only root can make this situation")
		return
	}
	dir, tree := open(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "m"), 0o755))
	require.NoError(t, unix.Mount(outside, filepath.Join(dir, "m"), "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(filepath.Join(dir, "m"), unix.MNT_DETACH) })
	_, _, err := tree.StatPath("/m/secret")
	require.ErrorIs(t, err, fs.ErrNotExist)
	var st worktree.Stat
	require.Equal(t, unix.EXDEV, tree.Stat(tree.Root().FD(), "m", &st))
	_, err = tree.Handle(tree.Root().FD(), "m")
	require.Equal(t, unix.EXDEV, err)
}
