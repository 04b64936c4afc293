package worktree

import "golang.org/x/sys/unix"

// Owner is who a new inode is to belong to.
type Owner struct{ UID, GID uint32 }

// set-id and sticky bits are given last: changing the owner takes set-id bits away, and nothing is
// to be set-id of the daemon for a moment.
const special = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// Create makes the regular file name in dir, which must not exist, and opens it for reading and
// writing. The process's umask has to be 0, or the mode is not what was asked for.
func (t *Direct) Create(dir int, name string, mode uint32, o Owner) (*Desc, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	d, err := openDesc(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, uint64(mode&0o777))
	if err != nil {
		return nil, err
	}
	if err := t.give(dir, d.fd, mode, o); err != nil {
		unix.Unlinkat(dir, name, 0)
		d.Drop()
		return nil, err
	}
	return d, nil
}

// Tmpfile makes a nameless regular file in dir, open for reading and writing. With exclusive it can
// never be given a name.
func (t *Direct) Tmpfile(dir int, mode uint32, exclusive bool, o Owner) (*Desc, error) {
	flags := uint64(unix.O_RDWR | unix.O_TMPFILE)
	if exclusive {
		flags |= unix.O_EXCL
	}
	d, err := openDesc(dir, ".", flags, uint64(mode&0o777))
	if err != nil {
		return nil, err
	}
	if err := t.give(dir, d.fd, mode, o); err != nil {
		d.Drop()
		return nil, err
	}
	return d, nil
}

// Mkdir makes a directory.
func (t *Direct) Mkdir(dir int, name string, mode uint32, o Owner) error {
	return t.makeNamed(name, o, func() error {
		return unix.Mkdirat(dir, name, mode&(unix.S_ISVTX|0o777))
	})
}

// Mknod makes an empty regular file, a fifo or a socket. Devices are EPERM.
func (t *Direct) Mknod(dir int, name string, mode uint32, o Owner) error {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG, 0:
		d, err := t.Create(dir, name, mode, o)
		d.Drop()
		return err
	case unix.S_IFIFO, unix.S_IFSOCK:
	default:
		return unix.EPERM
	}
	return t.makeNamed(name, o, func() error {
		return unix.Mknodat(dir, name, mode&(unix.S_IFMT|0o7777), 0)
	})
}

// Symlink makes a symbolic link with any text.
func (t *Direct) Symlink(dir int, name, text string, o Owner) error {
	return t.makeNamed(name, o, func() error {
		return unix.Symlinkat(text, dir, name)
	})
}

// makeNamed runs make for the owner.
func (t *Direct) makeNamed(name string, o Owner, make func() error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return as(t.self(), o, make)
}

func (t *Direct) self() Owner {
	return Owner{UID: uint32(unix.Geteuid()), GID: uint32(unix.Getegid())}
}

// give makes a new inode the owner's. In a directory with the set-group-id bit it keeps the group
// that the file system gave it.
func (t *Direct) give(dir, fd int, mode uint32, o Owner) error {
	self := t.self()
	uid, gid := -1, -1
	if o.UID != self.UID {
		uid = int(o.UID)
	}
	if o.GID != self.GID && !t.setgid(dir) {
		gid = int(o.GID)
	}
	if uid >= 0 || gid >= 0 {
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if mode&special == 0 {
		return nil
	}
	return t.addMode(fd, mode&special)
}

func (t *Direct) setgid(dir int) bool {
	var st Stat
	return t.StatFD(dir, &st) == nil && st.Mode&unix.S_ISGID != 0
}

// addMode adds bits to the mode that an inode was made with: that may come from a default ACL and
// from the directory's set-group-id bit.
func (t *Direct) addMode(fd int, bits uint32) error {
	var st Stat
	if err := t.StatFD(fd, &st); err != nil {
		return err
	}
	return t.Chmod(fd, uint32(st.Mode)&0o7777|bits)
}

// Link gives the inode behind fd the further name. A nameless file made with Tmpfile too.
func (t *Direct) Link(fd int, dir int, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return retry(func() error {
		return unix.Linkat(t.proc, procName(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	})
}

// Unlink takes away the name of what is no directory, Rmdir that of an empty directory.
func (t *Direct) Unlink(dir int, name string) error { return t.remove(dir, name, 0) }

// Rmdir takes away an empty directory.
func (t *Direct) Rmdir(dir int, name string) error { return t.remove(dir, name, unix.AT_REMOVEDIR) }

func (t *Direct) remove(dir int, name string, flags int) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return retry(func() error { return unix.Unlinkat(dir, name, flags) })
}

// Rename is renameat2(2).
func (t *Direct) Rename(fromDir int, from string, toDir int, to string, flags uint32) error {
	if CheckName(from) != nil || CheckName(to) != nil {
		return unix.EINVAL
	}
	return retry(func() error { return unix.Renameat2(fromDir, from, toDir, to, uint(flags)) })
}
