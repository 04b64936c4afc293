package worktree

import "golang.org/x/sys/unix"

// Chmod sets the permission, set-id and sticky bits.
func (t *Direct) Chmod(fd int, mode uint32) error {
	return retry(func() error { return unix.Fchmodat(t.proc, procName(fd), mode&0o7777, 0) })
}

// Chown sets owner and group; -1 leaves one as it is.
func (t *Direct) Chown(fd, uid, gid int) error {
	return retry(func() error {
		return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	})
}

// Utimes sets access and modification time; UTIME_OMIT and UTIME_NOW are understood.
func (t *Direct) Utimes(fd int, atime, mtime unix.Timespec) error {
	return retry(func() error { return unix.UtimesNanoAt(t.proc, procName(fd), []unix.Timespec{atime, mtime}, 0) })
}

// Truncate sets the size of the regular file behind fd, which need not be open for writing.
func (t *Direct) Truncate(fd int, size int64) error {
	return retry(func() error { return unix.Truncate(procPath(fd), size) })
}

// Readlink returns the text of the symbolic link behind fd.
func (t *Direct) Readlink(fd int) ([]byte, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// GetXattr reads an extended attribute into dest and returns its length; with an empty dest only
// the length.
func (t *Direct) GetXattr(fd int, name string, dest []byte) (int, error) {
	n, err := unix.Getxattr(procPath(fd), name, dest)
	return max(n, 0), err
}

// ListXattr is GetXattr for the names, each ended by a 0 byte.
func (t *Direct) ListXattr(fd int, dest []byte) (int, error) {
	n, err := unix.Listxattr(procPath(fd), dest)
	return max(n, 0), err
}

// SetXattr sets an attribute; flags are XATTR_CREATE and XATTR_REPLACE.
func (t *Direct) SetXattr(fd int, name string, value []byte, flags int) error {
	return retry(func() error { return unix.Setxattr(procPath(fd), name, value, flags) })
}

// RemoveXattr removes an attribute.
func (t *Direct) RemoveXattr(fd int, name string) error {
	return retry(func() error { return unix.Removexattr(procPath(fd), name) })
}
