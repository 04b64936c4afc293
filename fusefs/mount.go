package fusefs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/fusefs/conn"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// maxWrite bounds one read or write of plain mode.
	maxWrite = 1 << 20

	// maxBackground is how many requests the kernel sends without waiting: readahead, releases.
	maxBackground = 64
)

// Mount is a live mount. Its methods are safe for concurrent use.
type Mount struct {
	fs   *fileSystem
	path string
	id   int // in the table of mounts, 0 where that could not be read
	done chan struct{}
}

// New mounts the tree and returns when the mount answers. A nil attributor or recorder switches
// tracking off. The tree must not be closed before Done.
//
// New sets the umask of the process to 0.
func New(cfg Config, tree *worktree.Direct, a Attributor, r Recorder, log *slog.Logger) (*Mount, error) {
	path, err := CheckMountpoint(cfg.Mountpoint)
	if err != nil {
		return nil, err
	}
	if err := CheckDevice(); err != nil {
		return nil, err
	}
	f, err := newFileSystem(cfg, tree, a, r, log)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", tree.Path(), err)
	}
	unix.Umask(0)
	if err := f.connect(path, cfg); err != nil {
		f.OnUnmount()
		return nil, fmt.Errorf("mount %q: %w", path, err)
	}
	m := &Mount{fs: f, path: path, done: make(chan struct{})}
	if at, err := mountedAt(path); err != nil {
		log.Warn("the table of mounts cannot be read", "error", err)
	} else if at != nil {
		m.id = at.ID
	}
	go f.notifier.run(f.conn)
	go func() {
		defer close(m.done)
		f.conn.Serve()
		f.OnUnmount()
	}()
	return m, nil
}

// CheckDevice says in one line why this process cannot mount, nil where it can. The error wraps
// session.ErrInvalid.
func CheckDevice() error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: /dev/fuse cannot be opened: %w; load the fuse module, or give this container the device", session.ErrInvalid, err)
	}
	unix.Close(fd)
	if os.Geteuid() == 0 {
		return nil
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		return fmt.Errorf("%w: fusermount3 is needed to mount without being root; install the package fuse3", session.ErrInvalid)
	}
	return nil
}

// connect mounts and agrees with the kernel on the terms. Before the first request is read it settles,
// for the whole mount, whether there is passthrough.
func (f *fileSystem) connect(path string, cfg Config) error {
	source := cfg.FSName
	if source == "" {
		source = f.tree.Path()
	}
	fd, err := conn.Mount(path, conn.Options{Source: source, Subtype: subtype, AllowOther: cfg.AllowOther, MaxRead: maxWrite})
	if err != nil {
		return err
	}
	f.conn, err = conn.New(fd, fuse.NewProtocolServer(f, f.options(cfg)), maxWrite, f.log)
	if err != nil {
		detach(path)
		return err
	}
	if !cfg.NoPassthrough && os.Geteuid() == 0 {
		if err := f.tryPassthrough(); err != nil {
			f.log.Warn("no passthrough: file data goes through the daemon", "reason", err)
			return nil
		}
		f.passthrough = true
	}
	return nil
}

func (f *fileSystem) options(cfg Config) *fuse.MountOptions {
	o := &fuse.MountOptions{
		MaxBackground:        maxBackground,
		MaxWrite:             maxWrite,
		Logger:               slog.NewLogLogger(f.log.Handler(), slog.LevelWarn),
		EnableSymlinkCaching: true,
		EnableAcl:            f.tree.HasACL(),
		PanicHandler:         f.panicked,
		MaxStackDepth:        f.tree.StackDepth(),
		ExtraCapabilities: fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ATOMIC_O_TRUNC |
			fuse.CAP_SETXATTR_EXT | fuse.CAP_ASYNC_DIO,
	}
	if f.tree.HasACL() {
		o.ExtraCapabilities |= fuse.CAP_DONT_MASK
	}
	if cfg.NoPassthrough || os.Geteuid() != 0 {
		o.DisabledCapabilities |= fuse.CAP_PASSTHROUGH
	}
	return o
}

// panicked makes a bug in a handler the failure of one request.
func (f *fileSystem) panicked(v any) fuse.Status {
	f.log.Error("a request failed by a bug", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fuse.EIO
}

// Passthrough reports whether the kernel reads and writes file data itself.
func (m *Mount) Passthrough() bool { return m.fs.passthrough }

// Done is closed when the kernel has ended the mount: it was unmounted, by whomever, and nothing uses
// it any more.
func (m *Mount) Done() <-chan struct{} { return m.done }

// lastUse is how long an unmount waits for the kernel to end the connection after the name is gone. The
// mount may be bound elsewhere, or something may hold it that umount(2) does not count.
const lastUse = 2 * time.Second

// Unmount takes the mount away. Where something still uses it, its name is free at once, what is
// open goes on working as long as this process serves it, and detached is true: Done is closed when
// the last user is gone. A mount whose name is gone already is no error.
func (m *Mount) Unmount(ctx context.Context) (detached bool, err error) {
	if !m.nameGone() {
		switch err := unmount(m.path); {
		case errors.Is(err, unix.EBUSY):
			return true, m.wrap(detach(m.path))
		case err != nil:
			return false, m.wrap(err)
		}
	}
	last := time.NewTimer(lastUse)
	defer last.Stop()
	select {
	case <-m.done:
		return false, nil
	case <-last.C:
		return true, nil
	case <-ctx.Done():
		return true, nil
	}
}

// nameGone reports whether what is mounted at the path, if anything, is not this mount any more.
func (m *Mount) nameGone() bool {
	select {
	case <-m.done:
		return true
	default:
	}
	at, err := mountedAt(m.path)
	return err == nil && (at == nil || m.id != 0 && at.ID != m.id)
}

func (m *Mount) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("unmount %q: %w", m.path, err)
}

// Settle waits, wait at most, for releases in flight: handles for writing of the tool use (all of
// the mount for "") whose opener is gone. Then it records a change.Write for every such handle that is
// still open and whose file changed since the last record.
func (m *Mount) Settle(ctx context.Context, toolUseID string, wait time.Duration) {
	m.fs.settle(ctx, toolUseID, wait)
}
