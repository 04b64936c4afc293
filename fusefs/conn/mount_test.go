package conn

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// tree has a root with files: "fN" answers at once, anything else waits until it is let go or its
// caller is interrupted.
type tree struct {
	fuse.RawFileSystem
	reached     chan string
	free        chan struct{}
	interrupted atomic.Int32
	forgotten   atomic.Int64
	size        atomic.Int64
}

func newTree() *tree {
	return &tree{RawFileSystem: fuse.NewDefaultRawFileSystem(), reached: make(chan string, 100), free: make(chan struct{})}
}

func (f *tree) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.Attr = fuse.Attr{Ino: in.NodeId, Mode: fuse.S_IFREG | 0o644, Nlink: 1, Size: uint64(f.size.Load())}
	if in.NodeId == 1 {
		out.Mode = fuse.S_IFDIR | 0o755
	}
	out.SetTimeout(time.Hour)
	return fuse.OK
}

func (f *tree) Lookup(cancel <-chan struct{}, _ *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if name[0] != 'f' {
		f.reached <- name
		select {
		case <-f.free:
		case <-cancel:
			f.interrupted.Add(1)
			return fuse.EINTR
		}
	}
	out.NodeId, out.Generation = 2, 1
	out.Attr = fuse.Attr{Ino: 2, Mode: fuse.S_IFREG | 0o644, Nlink: 1, Size: uint64(f.size.Load())}
	out.SetEntryTimeout(time.Hour)
	out.SetAttrTimeout(time.Hour)
	return fuse.OK
}

func (f *tree) Forget(_, n uint64) { f.forgotten.Add(int64(n)) }

// live is a mount of a tree.
type live struct {
	t    *testing.T
	dir  string
	conn *Conn
	done chan struct{}
}

func mountTree(t *testing.T, f *tree) *live {
	// What keeps this process from waiting for itself: files are used by bare system calls alone.
	m := &live{t: t, dir: t.TempDir(), done: make(chan struct{})}
	fd, err := Mount(m.dir, Options{Source: "a,b\\c", Subtype: "vfsd", AllowOther: os.Geteuid() == 0, MaxRead: 128 << 10})
	require.NoError(t, err)
	m.conn, err = New(fd, fuse.NewProtocolServer(f, &fuse.MountOptions{MaxWrite: 128 << 10}), 128<<10, slog.Default())
	require.NoError(t, err)
	go func() {
		defer close(m.done)
		m.conn.Serve()
	}()
	t.Cleanup(func() { unix.Unmount(m.dir, unix.MNT_DETACH); m.ends() })
	return m
}

func (m *live) ends() {
	m.t.Helper()
	select {
	case <-m.done:
	case <-time.After(patience):
		m.t.Fatal("it is not served to the end")
	}
}

// abort cuts the connection by the file system of FUSE's connections.
func (m *live) abort() {
	var st unix.Stat_t
	require.NoError(m.t, unix.Stat(m.dir, &st))
	control := m.t.TempDir()
	require.NoError(m.t, unix.Mount("fusectl", control, "fusectl", 0, ""))
	defer unix.Unmount(control, unix.MNT_DETACH)
	require.NoError(m.t, os.WriteFile(fmt.Sprintf("%s/%d/abort", control, unix.Minor(st.Dev)), []byte("1"), 0))
}

func (m *live) stat(name string) error {
	var st unix.Stat_t
	return unix.Stat(m.dir+"/"+name, &st)
}

// wait has another process wait for a name, and returns once it does.
func (m *live) wait(f *tree, name string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/stat", m.dir+"/"+name)
	require.NoError(m.t, cmd.Start())
	require.Equal(m.t, name, <-f.reached)
	return cmd
}

func asRoot(t *testing.T) {
	require.Zero(t, os.Geteuid(), "this test mounts; run it as root")
}

func TestMountIsServed(t *testing.T) {
	asRoot(t)
	m := mountTree(t, newTree())
	for i := range 1000 {
		require.NoError(t, m.stat(fmt.Sprint("f", i)))
	}
	require.NoError(t, unix.Unmount(m.dir, 0))
	m.ends()
}

func TestOthersAreAnsweredMeanwhile(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	waits := m.wait(f, "x")
	require.NoError(t, m.stat("f"))
	close(f.free)
	require.NoError(t, waits.Wait())
}

func TestInterrupt(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	waits := m.wait(f, "x")
	require.NoError(t, waits.Process.Signal(syscall.SIGINT))
	require.Error(t, waits.Wait())
	require.EqualValues(t, 1, f.interrupted.Load())
	require.NoError(t, m.stat("f"))
}

func TestAbortWhileOneWaits(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	waits := m.wait(f, "x")
	m.abort()
	require.Error(t, waits.Wait(), "nobody is kept waiting")
	require.ErrorIs(t, m.stat("f"), unix.ENOTCONN)
	close(f.free)
	m.ends()
}

func TestUnmountWhileOneWaits(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	waits := m.wait(f, "x")
	require.ErrorIs(t, unix.Unmount(m.dir, 0), unix.EBUSY)
	require.NoError(t, unix.Unmount(m.dir, unix.MNT_DETACH))
	close(f.free)
	require.NoError(t, waits.Wait())
	m.ends()
}

func TestEndAtAnyMoment(t *testing.T) {
	asRoot(t)
	for i := range 20 {
		m := mountTree(t, newTree())
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; m.stat(fmt.Sprint("f", n)) == nil; n++ {
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		if i%2 == 0 {
			m.abort()
		} else {
			require.NoError(t, unix.Unmount(m.dir, unix.MNT_DETACH))
		}
		close(stop)
		<-ended
		unix.Unmount(m.dir, unix.MNT_DETACH)
		m.ends()
	}
}

func TestForgetsOfTheKernel(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	const files = 5000
	for i := range files {
		require.NoError(t, m.stat(fmt.Sprint("f", i)))
	}
	for i := range files {
		require.NoError(t, m.conn.InvalidateEntry(1, fmt.Sprint("f", i)))
	}
	require.Eventually(t, func() bool { return f.forgotten.Load() == files }, patience, time.Millisecond)
}

func TestInvalidateAttr(t *testing.T) {
	asRoot(t)
	f := newTree()
	m := mountTree(t, f)
	size := func() int64 {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(m.dir+"/f", &st))
		return st.Size
	}
	require.EqualValues(t, 0, size())
	f.size.Store(7)
	require.EqualValues(t, 0, size(), "the kernel trusts what it knows")
	require.NoError(t, m.conn.InvalidateAttr(2))
	require.EqualValues(t, 7, size())
	require.ErrorIs(t, m.conn.InvalidateAttr(999), unix.ENOENT)
}

func TestTerms(t *testing.T) {
	asRoot(t)
	m := mountTree(t, newTree())
	terms := m.conn.Terms()
	require.NotZero(t, terms.Flags64()&fuse.CAP_PARALLEL_DIROPS)
	require.EqualValues(t, 128<<10, terms.MaxWrite)
}
