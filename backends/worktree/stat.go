package worktree

import (
	"aimon.at/vfsd/change"
	"golang.org/x/sys/unix"
)

const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// Stat is what statx(2) says of an inode.
type Stat struct{ unix.Statx_t }

// ID names the inode over its whole life.
func (s *Stat) ID() change.FileID {
	id := change.FileID{Dev: unix.Mkdev(s.Dev_major, s.Dev_minor), Ino: s.Ino}
	if s.Mask&unix.STATX_BTIME != 0 {
		id.Birth = nanos(s.Btime)
	}
	return id
}

// Stamp is what tells whether the content may have changed.
func (s *Stat) Stamp() change.Stamp {
	return change.Stamp{Size: int64(s.Size), Mtime: nanos(s.Mtime), Ctime: nanos(s.Ctime)}
}

// Type is the S_IFMT part of the mode.
func (s *Stat) Type() uint32 { return uint32(s.Mode) & unix.S_IFMT }

// IsDir reports whether it is a directory.
func (s *Stat) IsDir() bool { return s.Type() == unix.S_IFDIR }

// IsRegular reports whether it is a regular file.
func (s *Stat) IsRegular() bool { return s.Type() == unix.S_IFREG }

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// Stat looks at name in dir without following a symbolic link. It is EXDEV where something is
// mounted on it.
func (t *Direct) Stat(dir int, name string, st *Stat) error {
	if err := CheckName(name); err != nil {
		return err
	}
	err := retry(func() error {
		return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, statMask, &st.Statx_t)
	})
	if err == nil && t.foreign(st) {
		return unix.EXDEV
	}
	return err
}

// StatFD looks at the inode behind a descriptor of the tree.
func (t *Direct) StatFD(fd int, st *Stat) error {
	return retry(func() error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, statMask, &st.Statx_t)
	})
}

// foreign reports whether st is of another mount than the source: the device number alone does not
// tell, as a directory of the same file system may be bound there.
func (t *Direct) foreign(st *Stat) bool {
	if st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id != t.mount
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// Statfs describes the file system of the source.
func (t *Direct) Statfs(st *unix.Statfs_t) error {
	return retry(func() error { return unix.Fstatfs(t.root.fd, st) })
}

// CheckName is EINVAL for what is no single element of a path.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." {
		return unix.EINVAL
	}
	for i := 0; i < len(name); i++ {
		if name[i] == '/' || name[i] == 0 {
			return unix.EINVAL
		}
	}
	return nil
}

// retry runs a system call again where a signal cut it short: no operation ends because somebody
// was interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
