package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"aimon.at/vfsd/change"
	"golang.org/x/sys/unix"
)

// File is a regular file of the tree, open for reading. It is safe for concurrent use until Close.
type File struct {
	t *Direct
	d *Desc
}

// OpenFile opens the regular file at a path as in change.Event, without blocking and, where that can
// be had, without changing its access time. Missing is fs.ErrNotExist, anything but a regular file
// fs.ErrInvalid.
func (t *Direct) OpenFile(path string) (*File, error) {
	h, st, err := t.at(path)
	if err != nil {
		return nil, err
	}
	defer h.Drop()
	if !st.IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file: %w", path, fs.ErrInvalid)
	}
	d, err := t.Reopen(h.fd, unix.O_RDONLY|unix.O_NOATIME)
	if err == unix.EPERM { // not the owner, and without privilege
		d, err = t.Reopen(h.fd, unix.O_RDONLY)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return &File{t: t, d: d}, nil
}

// ReadAt is io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		m, err := unix.Pread(f.d.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, nil
}

// Stat says which inode it is and what stands for its content now.
func (f *File) Stat() (change.FileID, change.Stamp, error) {
	var st Stat
	if err := f.t.StatFD(f.d.fd, &st); err != nil {
		return change.FileID{}, change.Stamp{}, err
	}
	return st.ID(), st.Stamp(), nil
}

// Writable reports whether anybody could still change the content, by an open descriptor or a shared
// mapping: then a read lease is refused. It answers true where the file system gives none. The lease
// is given back at once; who opens the file for writing meanwhile waits for that, some microseconds.
// (The signal that such an open sends, SIGIO, is ignored by the Go runtime.)
func (f *File) Writable() bool {
	if _, err := unix.FcntlInt(uintptr(f.d.fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return true
	}
	unix.FcntlInt(uintptr(f.d.fd), unix.F_SETLEASE, unix.F_UNLCK)
	return false
}

// Close closes it.
func (f *File) Close() error {
	f.d.Drop()
	return nil
}

// StatPath is OpenFile and File.Stat without opening.
func (t *Direct) StatPath(path string) (change.FileID, change.Stamp, error) {
	h, st, err := t.at(path)
	if err != nil {
		return change.FileID{}, change.Stamp{}, err
	}
	h.Drop()
	if !st.IsRegular() {
		return change.FileID{}, change.Stamp{}, fmt.Errorf("%q is not a regular file: %w", path, fs.ErrInvalid)
	}
	return st.ID(), st.Stamp(), nil
}

// ReadRoot returns the content of the regular file name in the root, an error where it has more than
// limit bytes.
func (t *Direct) ReadRoot(name string, limit int64) ([]byte, error) {
	f, err := t.OpenFile("/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("%q has more than %d bytes: %w", name, limit, fs.ErrInvalid)
	}
	return b, err
}

// at opens what is at path as O_PATH and looks at it.
func (t *Direct) at(path string) (*Desc, *Stat, error) {
	h, err := t.walk(path)
	if err != nil {
		if gone(err) {
			err = fs.ErrNotExist
		}
		return nil, nil, fmt.Errorf("look up %q: %w", path, err)
	}
	st := new(Stat)
	if err := t.StatFD(h.fd, st); err != nil {
		h.Drop()
		return nil, nil, fmt.Errorf("look up %q: %w", path, err)
	}
	return h, st, nil
}

// gone reports whether a walk ended where the path does not lead on: what was a directory is none any
// more, or a link, or is covered by a mount.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENAMETOOLONG)
}
