package fusefs

import (
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// status is the one place where an error becomes what the kernel is told.
func status(err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) || errno == 0 {
		return fuse.EIO
	}
	switch errno {
	case syscall.ENOSYS:
		// It would switch the request off for the whole mount.
		return fuse.ENOTSUP
	case syscall.EINTR, syscall.EMFILE, syscall.ENFILE:
		// Short of our own descriptors, not of the caller's.
		return fuse.EIO
	}
	return fuse.Status(errno)
}
