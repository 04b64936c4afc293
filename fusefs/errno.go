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
	case syscall.EINTR:
		return fuse.EIO
	case syscall.EMFILE:
		// Short of our own descriptors, not of the caller's: to it that is the system's limit.
		return fuse.Status(syscall.ENFILE)
	}
	return fuse.Status(errno)
}
