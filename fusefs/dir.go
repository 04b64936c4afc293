package fusefs

import (
	"bytes"
	"encoding/binary"
	"sync"

	"aimon.at/vfsd/backends/worktree"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const direntsSize = 32 << 10

// dirHandle is an open directory. Offsets are the backing file system's own, so that a listing can
// be taken up anywhere while the directory changes.
type dirHandle struct {
	node *node
	desc *worktree.Desc

	mu   sync.Mutex // guards all below and the descriptor's position
	buf  []byte     // nil until the first read
	rest []byte     // the part of buf that is not consumed
	at   int64      // offset of the entry that rest begins with
}

// dirent is an entry as getdents64(2) gives it.
type dirent struct {
	ino  uint64
	next int64 // offset of the entry after it
	kind uint32
	name []byte
	size int
}

// direntHeader: u64 ino, s64 off, u16 reclen, u8 type, then the name and a 0 byte.
const direntHeader = 19

func parseDirent(b []byte) dirent {
	size := int(binary.NativeEndian.Uint16(b[16:]))
	name := b[direntHeader:size]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	return dirent{
		ino:  binary.NativeEndian.Uint64(b),
		next: int64(binary.NativeEndian.Uint64(b[8:])),
		kind: uint32(b[18]) << 12,
		name: name,
		size: size,
	}
}

func (f *fileSystem) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if err := f.room(); err != nil {
		return status(err)
	}
	list, err := f.tree.ReadableDir(d.FD())
	if err != nil {
		return status(err)
	}
	f.table.pin(n)
	out.Fh = f.handles.addDir(&dirHandle{node: n, desc: list})
	if f.exclusive {
		out.OpenFlags |= fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	}
	return fuse.OK
}

func (f *fileSystem) ReleaseDir(in *fuse.ReleaseIn) {
	if h := f.handles.removeDir(in.Fh); h != nil {
		h.desc.Drop()
		f.table.release(h.node)
	}
}

func (f *fileSystem) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h := f.handles.dir(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	return status(syncFD(h.desc.FD(), in.FsyncFlags))
}

func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(_ *dirHandle, e fuse.DirEntry) bool { return out.AddDirEntry(e) })
}

func (f *fileSystem) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, func(h *dirHandle, e fuse.DirEntry) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		f.fillListed(h, e.Name, entry)
		return true
	})
}

// fillListed answers the lookup of a listed name. Where it is none of the tree or gone already it
// leaves the entry without a node: the kernel looks it up when it needs it.
func (f *fileSystem) fillListed(h *dirHandle, name string, out *fuse.EntryOut) {
	var st worktree.Stat
	if name == "." || name == ".." || f.tree.Stat(h.desc.FD(), name, &st) != nil {
		return
	}
	f.fillEntry(f.table.enter(h.node, name, &st), &st, out)
}

// list gives the entries from the request's offset on to add, until that says that it is full.
func (f *fileSystem) list(in *fuse.ReadIn, add func(*dirHandle, fuse.DirEntry) bool) fuse.Status {
	h := f.handles.dir(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.seek(int64(in.Offset)); err != nil {
		return status(err)
	}
	for added := false; ; {
		e, ok, err := h.peek()
		if err != nil && !added {
			return status(err)
		}
		if err != nil || !ok {
			return fuse.OK
		}
		name := string(e.name)
		if !reserved(h.node, name) {
			if !add(h, fuse.DirEntry{Ino: e.ino, Mode: e.kind, Name: name, Off: uint64(e.next)}) {
				return fuse.OK
			}
			added = true
		}
		h.rest = h.rest[e.size:]
		h.at = e.next
	}
}

// seek goes to an offset. The start is always read anew: rewinddir(3) is to see what changed.
func (h *dirHandle) seek(off int64) error {
	if off == h.at && off != 0 {
		return nil
	}
	h.rest = nil
	if _, err := unix.Seek(h.desc.FD(), off, 0); err != nil {
		return err
	}
	h.at = off
	return nil
}

// peek returns the entry at the offset, false at the end.
func (h *dirHandle) peek() (dirent, bool, error) {
	if len(h.rest) == 0 {
		if h.buf == nil {
			h.buf = make([]byte, direntsSize)
		}
		n, err := unix.Getdents(h.desc.FD(), h.buf)
		if err != nil || n == 0 {
			return dirent{}, false, err
		}
		h.rest = h.buf[:n]
	}
	return parseDirent(h.rest), true, nil
}
