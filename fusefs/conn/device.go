package conn

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// From include/uapi/linux/fuse.h.
const (
	iocBackingOpen  = 0x4010e501
	iocBackingClose = 0x4004e502
)

// use runs do with the descriptor, which is not closed meanwhile. After the end it is ENODEV.
func (c *Conn) use(do func(fd int) error) error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.closed {
		return unix.ENODEV
	}
	return do(c.fd)
}

// Back registers the file behind fd, which may be O_PATH, as one that the kernel reads and writes
// itself, and returns its id for replies to OPEN.
func (c *Conn) Back(fd int) (id int32, err error) {
	m := fuse.BackingMap{Fd: int32(fd)}
	err = c.use(func(dev int) error {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(dev), iocBackingOpen, uintptr(unsafe.Pointer(&m)))
		id = int32(n)
		return orNil(errno)
	})
	return id, err
}

// Unback takes a registration back. What is open with it keeps the file.
func (c *Conn) Unback(id int32) error {
	return c.use(func(dev int) error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(dev), iocBackingClose, uintptr(unsafe.Pointer(&id)))
		return orNil(errno)
	})
}

func orNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// InvalidateAttr makes the kernel ask for the attributes of an inode anew. It is ENOENT where the
// kernel does not know it any more. Not to be called from a handler.
func (c *Conn) InvalidateAttr(inode uint64) error {
	// A negative offset leaves the pages alone.
	return c.notify(fuse.NOTIFY_INVAL_INODE, bytesOf(&fuse.NotifyInvalInodeOut{Ino: inode, Off: -1}))
}

// InvalidateEntry makes the kernel look a name up anew. Not to be called from a handler.
func (c *Conn) InvalidateEntry(parent uint64, name string) error {
	out := fuse.NotifyInvalEntryOut{Parent: parent, NameLen: uint32(len(name))}
	return c.notify(fuse.NOTIFY_INVAL_ENTRY, append(append(bytesOf(&out), name...), 0))
}

// notify writes a message of ours: one that answers nothing, with its kind, negative in go-fuse,
// where a reply has its error.
func (c *Conn) notify(kind int32, body []byte) error {
	h := fuse.OutHeader{Length: uint32(outHeaderSize + len(body)), Status: -kind}
	b := append(append(make([]byte, 0, h.Length), bytesOf(&h)...), body...)
	return c.use(func(fd int) error {
		_, err := unix.Write(fd, b)
		return err
	})
}
