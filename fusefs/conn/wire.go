package conn

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Kinds of requests, from include/uapi/linux/fuse.h.
const (
	opFsync           = 20
	opInit            = 26
	opFsyncDir        = 30
	opSetLkw          = 33
	opFallocate       = 43
	opCopyFileRange   = 47
	opSyncFS          = 50
	opCopyFileRange64 = 53
)

// maxKinds is above all kinds of Linux 6.18. What comes later is counted as one.
const maxKinds = 64

const (
	inHeaderSize  = int(unsafe.Sizeof(fuse.InHeader{}))
	outHeaderSize = int(unsafe.Sizeof(fuse.OutHeader{}))
)

// blocks reports whether requests of the kind usually wait for something.
func blocks(op uint32) bool {
	switch op {
	case opFsync, opFsyncDir, opSetLkw, opFallocate, opCopyFileRange, opSyncFS, opCopyFileRange64:
		return true
	}
	return false
}

func header(b []byte) *fuse.InHeader     { return (*fuse.InHeader)(unsafe.Pointer(&b[0])) }
func outHeader(b []byte) *fuse.OutHeader { return (*fuse.OutHeader)(unsafe.Pointer(&b[0])) }

// bytesOf is the memory of a value without pointers.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
