package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// dialTimeout bounds the question whether a daemon lives on a socket.
const dialTimeout = 2 * time.Second

// maxAddr is the longest path that can be dialled: sun_path of unix(7) less its final NUL.
const maxAddr = 107

// Listen listens on a unix socket at path. Root's daemon serves everybody, and judges them by their
// credentials: its directory is 0755 and the socket 0666. Any other daemon serves its user: 0700
// and 0600. A directory that exists keeps its mode.
//
// A live daemon on the socket is session.ErrConflict. The socket of a dead one is replaced. It has
// its final mode before anything can connect, and closing the listener removes it where it is still
// ours.
func Listen(path string) (net.Listener, error) {
	return listen(path, os.Geteuid() == 0)
}

func listen(path string, everybody bool) (net.Listener, error) {
	if len(path) > maxAddr {
		return nil, fmt.Errorf("%w control socket: %s is longer than %d bytes, the most that a unix socket can have", session.ErrInvalid, path, maxAddr)
	}
	dirMode, mode := fs.FileMode(0o700), fs.FileMode(0o600)
	if everybody {
		dirMode, mode = 0o755, 0o666
	}
	if err := makeDir(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := vacant(path); err != nil {
		return nil, err
	}
	return bind(path, mode)
}

func makeDir(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return noDir(err)
	}
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(dir, mode) // the umask may have taken bits away
	}
	if err != nil {
		return noDir(err)
	}
	return nil
}

func noDir(err error) error {
	return fmt.Errorf("control socket: %w; choose another path by --socket, or set XDG_RUNTIME_DIR to a directory of yours", err)
}

// lockDir keeps two daemons that start at once from both finding the socket of a dead one and each
// removing what the other just made. The lock is on the directory itself: no file stays behind.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("control socket: locking %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// vacant makes sure that nothing is at path. Only a socket on which nobody listens is removed.
func vacant(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: %s exists and is no socket: remove it, or choose another path by --socket", session.ErrConflict, path)
	}
	c, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		c.Close()
		return fmt.Errorf("%w: a daemon already listens on %s: stop it, or choose another path by --socket", session.ErrConflict, path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: %s is in use (%w): choose another path by --socket", session.ErrConflict, path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// bind makes the socket under a name inside a private directory, sets its mode and links it to path:
// link fails where the name was taken meanwhile, and needs no umask, which is the whole process's.
func bind(path string, mode fs.FileMode) (net.Listener, error) {
	private, err := os.MkdirTemp(filepath.Dir(path), ".vfsd-")
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer os.RemoveAll(private)
	dir, err := os.Open(private)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer dir.Close()
	// An address has room for 107 bytes: by the descriptor, the private directory takes none of them.
	name := fmt.Sprintf("/proc/self/fd/%d/s", dir.Fd())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := publish(name, path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return own(l, path)
}

func publish(name, path string, mode fs.FileMode) error {
	if err := os.Chmod(name, mode); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	err := os.Link(name, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: another daemon has just taken %s", session.ErrConflict, path)
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// listener removes its socket when it is closed, unless another one has its name by then.
type listener struct {
	*net.UnixListener
	path string
	made fs.FileInfo
}

func own(l *net.UnixListener, path string) (net.Listener, error) {
	st, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &listener{UnixListener: l, path: path, made: st}, nil
}

// Addr is where the socket can be dialled.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

func (l *listener) Close() error {
	if st, err := os.Lstat(l.path); err == nil && os.SameFile(st, l.made) {
		os.Remove(l.path)
	}
	return l.UnixListener.Close()
}
