package cgroup

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

// open makes Groups that tell what is gone on the channel.
func open(t *testing.T) (*Groups, chan string) {
	t.Helper()
	gone := make(chan string, 64)
	g, err := New(func(p string) { gone <- p }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g, gone
}

// await returns when path is told to be gone. Those of other tests are passed over.
func await(gone chan string, path string) {
	for p := range gone {
		if p == path {
			return
		}
	}
}

// child is a process that lives until end is called.
type child struct {
	*exec.Cmd
	in io.Closer
}

func start(t *testing.T, argv ...string) *child {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd, in}
	t.Cleanup(c.end)
	return c
}

func (c *child) end() {
	_ = c.in.Close()
	_ = c.Wait()
}

func place(t *testing.T, pid int) string {
	t.Helper()
	p, err := proc.Lookup(pid)
	require.NoError(t, err)
	path, err := proc.Cgroup(p)
	require.NoError(t, err)
	return path
}

func (g *Groups) at(path string) string { return filepath.Join(g.mount.point, path) }

func TestEnterAndRemove(t *testing.T) {
	g, gone := open(t)
	c := start(t, "cat")
	before := place(t, c.Process.Pid)
	path, err := g.Enter(context.Background(), "s", "t", c.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(before, name("s", "t")), path)
	require.Equal(t, path, place(t, c.Process.Pid))
	c.end()
	await(gone, path)
	require.NoDirExists(t, g.at(path))
	g.mu.Lock()
	defer g.mu.Unlock()
	require.NotContains(t, g.groups, path)
}

func TestStaysForWhoIsLeft(t *testing.T) {
	g, gone := open(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", `read x; setsid cat <&3 & echo $!`)
	cmd.ExtraFiles = []*os.File{r}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, r.Close())
	path, err := g.Enter(context.Background(), "s", "left", cmd.Process.Pid)
	require.NoError(t, err)
	_, err = io.WriteString(in, "\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.DirExists(t, g.at(path))
	require.NoError(t, w.Close())
	await(gone, path)
}

func TestNestedAreRemovedFromWithin(t *testing.T) {
	g, gone := open(t)
	outer := start(t, "sh", "-c", "cat; :")
	path, err := g.Enter(context.Background(), "s", "outer", outer.Process.Pid)
	require.NoError(t, err)
	inner := start(t, "cat")
	require.NoError(t, os.WriteFile(filepath.Join(g.at(path), procsIn), []byte(strconv.Itoa(inner.Process.Pid)), 0))
	nested, err := g.Enter(context.Background(), "s", "inner", inner.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(path, name("s", "inner")), nested)
	outer.end()
	inner.end()
	await(gone, nested)
	await(gone, path)
}

func TestEnterAgainLeavesTheFormer(t *testing.T) {
	g, gone := open(t)
	c := start(t, "cat")
	first, err := g.Enter(context.Background(), "s", "one", c.Process.Pid)
	require.NoError(t, err)
	second, err := g.Enter(context.Background(), "s", "two", c.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, filepath.Dir(first), filepath.Dir(second), "beside it, not inside")
	await(gone, first)
	require.Equal(t, second, place(t, c.Process.Pid))
}

func TestEnterNeverJoinsOthers(t *testing.T) {
	g, gone := open(t)
	one, two := start(t, "cat"), start(t, "cat")
	path, err := g.Enter(context.Background(), "s", "t", one.Process.Pid)
	require.NoError(t, err)
	before := place(t, two.Process.Pid)
	_, err = g.Enter(context.Background(), "s", "t", two.Process.Pid)
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, before, place(t, two.Process.Pid))
	one.end()
	await(gone, path)
}

func TestEnterFails(t *testing.T) {
	g, _ := open(t)
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	_, err := g.Enter(context.Background(), "s", "t", cmd.Process.Pid)
	require.ErrorIs(t, err, session.ErrNotFound)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = g.Enter(ctx, "s", "t", os.Getpid())
	require.ErrorIs(t, err, context.Canceled)
}

func TestThreadedDomain(t *testing.T) {
	g, _ := open(t)
	dir := filepath.Join(g.at(place(t, os.Getpid())), "vfsd-test-threaded")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "in"), 0o755))
	c := start(t, "cat")
	t.Cleanup(func() {
		c.end()
		_ = os.Remove(filepath.Join(dir, "in"))
		_ = os.Remove(dir)
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, procsIn), []byte(strconv.Itoa(c.Process.Pid)), 0))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in", "cgroup.type"), []byte("threaded"), 0))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in", "cgroup.threads"), []byte(strconv.Itoa(c.Process.Pid)), 0))
	_, err := g.Enter(context.Background(), "s", "threaded", c.Process.Pid)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "threaded")
	left, err := filepath.Glob(filepath.Join(dir, "in", prefix+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTakeOver(t *testing.T) {
	first, _ := open(t)
	c := start(t, "cat")
	alive, err := first.Enter(context.Background(), "s", "alive", c.Process.Pid)
	require.NoError(t, err)
	empty := filepath.Join(filepath.Dir(alive), name("s", "empty"))
	require.NoError(t, os.Mkdir(first.at(empty), 0o755))
	require.NoError(t, first.Close())
	require.DirExists(t, first.at(alive))

	second, gone := open(t)
	await(gone, empty)
	require.NoDirExists(t, second.at(empty))
	c.end()
	await(gone, alive)
}

func TestExplain(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.EROFS: "read-only", unix.EACCES: "root", unix.EPERM: "root", unix.EBUSY: "controllers",
		unix.EOPNOTSUPP: "threaded", unix.EAGAIN: "limit", unix.EIO: "refuses",
	} {
		err := explain("/x", errno)
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, explain("/x", unix.ESRCH), session.ErrNotFound)
}

func TestManyAtOnce(t *testing.T) {
	g, gone := open(t)
	paths := make(map[string]bool)
	for i := range 30 {
		c := start(t, "cat")
		path, err := g.Enter(context.Background(), "many", strconv.Itoa(i), c.Process.Pid)
		require.NoError(t, err)
		paths[path] = true
		c.end()
	}
	for len(paths) > 0 {
		delete(paths, <-gone)
	}
}
