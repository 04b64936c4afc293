package artifact

import (
	"context"
	"io"
	"time"

	"aimon.at/vfsd/change"
)

// Tree is the collector's view of a working tree. Paths are as in change.Event. Every path is
// resolved below the tree's root with symbolic links and mount crossings refused. Missing files
// are fs.ErrNotExist; what is no regular file is fs.ErrInvalid. Implementations are safe for
// concurrent use.
type Tree interface {
	// Open opens the regular file at path for reading, without blocking and without changing its
	// access time where that can be had. The caller closes it.
	Open(path string) (File, error)

	// Stat returns what Open and File.Stat would, without opening.
	Stat(path string) (change.FileID, change.Stamp, error)

	// Intent returns the raw user.aimon.artifact of the file or directory at path; nil where unset.
	Intent(path string) ([]byte, error)

	// ReadRoot returns the content of the regular file name in the root, at most limit bytes: an
	// error where it is larger.
	ReadRoot(name string, limit int64) ([]byte, error)
}

// File is an open regular file of a Tree.
type File interface {
	io.ReaderAt
	io.Closer
	Stat() (change.FileID, change.Stamp, error)

	// Writable reports whether anybody could still change the content: an open descriptor for
	// writing or a shared writable mapping. It asks by a read lease (fcntl F_SETLEASE), and answers
	// true where the file system cannot tell.
	Writable() bool
}

// Handles is the collector's view of the mount's open files.
type Handles interface {
	// Settle waits, wait at most, for releases in flight: handles for writing of the tool use (all of
	// the mount for "") whose opener is gone. Then it records a change.Write for every such handle
	// that is still open and whose file changed since the last record. When it returns, all
	// those events were handed to the recorder.
	Settle(ctx context.Context, toolUseID string, wait time.Duration)
}
