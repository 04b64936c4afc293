package fusefs

import (
	"math"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// ofHandle runs do with the handle's own descriptor.
func (f *fileSystem) ofHandle(id uint64, do func(h *handle, fd int) error) fuse.Status {
	h := f.handles.file(id)
	if h == nil {
		return fuse.EBADF
	}
	d, err := f.own(h)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	return status(do(h, d.FD()))
}

func (f *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n := 0
	st := f.ofHandle(in.Fh, func(_ *handle, fd int) error {
		var err error
		n, err = readFull(fd, buf, int64(in.Offset))
		return err
	})
	return inPlace(buf[:n]), st
}

// inPlace is data that stands in the reply's buffer already. It is no more than this, as go-fuse would
// copy what it can take piece by piece.
type inPlace []byte

func (b inPlace) Bytes(_ []byte) ([]byte, fuse.Status) { return b, fuse.OK }
func (b inPlace) Size() int                            { return len(b) }
func (b inPlace) Done()                                {}

// readFull reads until buf is full or the file ends: to the kernel a short read is the end.
func readFull(fd int, buf []byte, off int64) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := unix.Pread(fd, buf[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil && n == 0:
			return 0, err
		case err != nil || m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

func (f *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	n := 0
	st := f.ofHandle(in.Fh, func(h *handle, fd int) error {
		var err error
		h.wrote.Store(true)
		if n, err = writeFull(fd, data, int64(in.Offset)); n > 0 && in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
			f.wroteUnprivileged(h, fd, &in.InHeader)
		}
		return err
	})
	return uint32(n), st
}

func writeFull(fd int, data []byte, off int64) (int, error) {
	n := 0
	for n < len(data) {
		m, err := unix.Pwrite(fd, data[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil && n == 0:
			return 0, err
		case err != nil:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

// wroteUnprivileged is called after a write by somebody who loses the set-id bits with it.
func (f *fileSystem) wroteUnprivileged(h *handle, fd int, in *fuse.InHeader) {
	h.node.opened.mu.Lock()
	defer h.node.opened.mu.Unlock()
	if dropped, err := f.dropSetID(fd, in); dropped && err == nil {
		h.node.opened.dirty = true // the write is not recorded yet
	}
}

func (f *fileSystem) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	return f.ofHandle(in.Fh, func(_ *handle, fd int) error {
		off, err := unix.Seek(fd, int64(in.Offset), int(in.Whence))
		out.Offset = uint64(off)
		return err
	})
}

func (f *fileSystem) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.ofHandle(in.Fh, func(_ *handle, fd int) error { return syncFD(fd, in.FsyncFlags) })
}

const fsyncDataOnly = 1 // FUSE_FSYNC_FDATASYNC

func syncFD(fd int, flags uint32) error {
	if flags&fsyncDataOnly != 0 {
		return unix.Fdatasync(fd)
	}
	return unix.Fsync(fd)
}

func (f *fileSystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return f.ofHandle(in.Fh, func(h *handle, fd int) error {
		h.wrote.Store(true)
		for {
			err := unix.Fallocate(fd, in.Mode, int64(in.Offset), int64(in.Length))
			if err == unix.EINTR {
				continue
			}
			if err == nil && in.Uid != 0 {
				f.wroteUnprivileged(h, fd, &in.InHeader)
			}
			return err
		}
	})
}

func (f *fileSystem) CopyFileRange(_ <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	var n int
	st := f.ofHandle(in.FhIn, func(_ *handle, from int) error {
		return fromStatus(f.ofHandle(in.FhOut, func(h *handle, to int) error {
			h.wrote.Store(true)
			offIn, offOut := int64(in.OffIn), int64(in.OffOut)
			var err error
			n, err = unix.CopyFileRange(from, &offIn, to, &offOut, int(min(in.Len, math.MaxInt32&^4095)), int(in.Flags))
			if err == nil && in.Uid != 0 {
				f.wroteUnprivileged(h, to, &in.InHeader)
			}
			return err
		}))
	})
	return uint32(max(n, 0)), st
}

func fromStatus(s fuse.Status) error {
	if s == fuse.OK {
		return nil
	}
	return unix.Errno(s)
}

// Flush says nothing: it comes for every descriptor that is closed, inherited ones too.
func (f *fileSystem) Flush(_ <-chan struct{}, _ *fuse.FlushIn) fuse.Status { return fuse.OK }
