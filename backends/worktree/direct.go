package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"aimon.at/vfsd/session"
	"golang.org/x/sys/unix"
)

// Reserved is the name in the root that belongs to vfsd.
const Reserved = ".aimon"

// Direct is a local directory served as it is. It is safe for concurrent use.
type Direct struct {
	path  string
	root  *Desc
	proc  int    // O_PATH on /proc/self/fd
	mount uint64 // id of the mount that the source is on
	acl   bool
}

// Open opens the directory source. The error says what is wrong with it in one line and wraps
// session.ErrInvalid where the caller can mend it.
func Open(source string) (*Direct, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", source, err)
	}
	abs, err = filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w source %q: it does not exist; make it first", session.ErrInvalid, source)
	}
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", source, err)
	}
	root, err := unix.Open(abs, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%w source %q: it is not a directory", session.ErrInvalid, source)
	}
	if err != nil {
		return nil, fmt.Errorf("source %q: %w", source, err)
	}
	t := &Direct{path: abs, root: newDesc(root)}
	if err := t.prepare(); err != nil {
		t.root.Drop()
		return nil, err
	}
	return t, nil
}

func (t *Direct) prepare() error {
	proc, err := unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/proc/self/fd: %w; mount proc", err)
	}
	t.proc = proc
	if err := t.examine(); err != nil {
		unix.Close(proc)
		return err
	}
	return nil
}

// examine finds out what the source's file system can do and refuses a foreign .aimon.
func (t *Direct) examine() error {
	var st Stat
	if err := t.StatFD(t.root.fd, &st); err != nil {
		return fmt.Errorf("source %q: %w", t.path, err)
	}
	t.mount = st.Mnt_id
	_, err := t.GetXattr(t.root.fd, "system.posix_acl_access", nil)
	t.acl = err == nil || err == unix.ENODATA
	err = t.Stat(t.root.fd, Reserved, &st)
	if err == nil && !st.IsDir() || err == unix.EXDEV {
		return fmt.Errorf("%w source %q: it holds a %s that is not vfsd's; move that away", session.ErrInvalid, t.path, Reserved)
	}
	if err != nil && err != unix.ENOENT && err != unix.EXDEV {
		return fmt.Errorf("source %q: %s: %w", t.path, Reserved, err)
	}
	return nil
}

// Close gives the descriptors back. Nothing of the tree may be in use.
func (t *Direct) Close() error {
	t.root.Drop()
	return unix.Close(t.proc)
}

// Path is the absolute path of the source with symbolic links resolved.
func (t *Direct) Path() string { return t.path }

// Root is the source directory. The descriptor is the tree's own: to be held by who keeps it.
func (t *Direct) Root() *Desc { return t.root }

// HasACL reports whether the source's file system keeps POSIX ACLs.
func (t *Direct) HasACL() bool { return t.acl }

// StackDepth is how many file systems are stacked below a file of the source at most: what a mount
// that passes data through to it has to allow for.
func (t *Direct) StackDepth() int {
	var st unix.Statfs_t
	if t.Statfs(&st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return 2
	}
	return 1
}

// procName is the name in /proc/self/fd, procPath the path, that lead to the inode behind fd.
func procName(fd int) string { return strconv.Itoa(fd) }
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
