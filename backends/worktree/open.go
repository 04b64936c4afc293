package worktree

import "golang.org/x/sys/unix"

// beneath is how every name is resolved.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS

// openat opens a path of one or more elements below dir. RESOLVE_BENEATH answers EAGAIN where a
// rename raced with the walk: to be tried again, some times.
func openat(dir int, path string, flags uint64, mode uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Mode: mode, Resolve: beneath}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(dir, path, &how)
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR, err == unix.EAGAIN && try < 100:
		default:
			return -1, err
		}
	}
}

func openDesc(dir int, path string, flags, mode uint64) (*Desc, error) {
	fd, err := openat(dir, path, flags, mode)
	if err != nil {
		return nil, err
	}
	return newDesc(fd), nil
}

// Handle opens name in dir as O_PATH: a descriptor that stands for the inode, a symbolic link's
// own included, and can neither block nor have an effect.
func (t *Direct) Handle(dir int, name string) (*Desc, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return openDesc(dir, name, unix.O_PATH, 0)
}

// HandleDir opens the directory at path, of one or more elements and up to 4,095 bytes, as O_PATH.
func (t *Direct) HandleDir(dir int, path string) (*Desc, error) {
	return openDesc(dir, path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// ReadableDir opens the directory behind a descriptor for listing.
func (t *Direct) ReadableDir(dir int) (*Desc, error) {
	return openDesc(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// Reopen opens the inode behind fd anew. The caller has made sure that it is a regular file or
// directory: a fifo could block.
func (t *Direct) Reopen(fd int, flags int) (*Desc, error) {
	for {
		n, err := unix.Openat(t.proc, procName(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return newDesc(n), nil
	}
}

// ReopenPath is Reopen as O_PATH.
func (t *Direct) ReopenPath(fd int) (*Desc, error) {
	n, err := unix.Openat(t.proc, procName(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return newDesc(n), nil
}
