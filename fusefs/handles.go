package fusefs

import (
	"sync"
	"sync/atomic"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/session"
)

// handle is an open file.
type handle struct {
	id    uint64
	node  *node
	flags int // access mode and what else reopening needs
	write bool
	who   session.Attribution
	by    opener
	link  link        // the name it was opened by, and where that was renamed to. Guarded by table.mu
	wrote atomic.Bool // in plain mode: since the last record

	// desc is the handle's own descriptor: in plain mode from the start, with passthrough from the
	// first request that the kernel does not carry out itself. Guarded by node.opened.mu.
	desc *worktree.Desc
}

// writes notes that the handle writes, before and, by what it returns, after: what is recorded meanwhile
// may or may not have it.
func (h *handle) writes() (done func()) {
	h.wrote.Store(true)
	return func() { h.wrote.Store(true) }
}

// handles is the table of open files and directories.
type handles struct {
	mu       sync.Mutex // guards all below
	lastID   uint64
	files    map[uint64]*handle
	dirs     map[uint64]*dirHandle
	released chan struct{} // closed at the next release of a handle for writing; nil while nobody waits
}

func newHandles() *handles {
	return &handles{files: map[uint64]*handle{}, dirs: map[uint64]*dirHandle{}}
}

func (t *handles) add(h *handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	h.id = t.lastID
	t.files[h.id] = h
}

func (t *handles) file(id uint64) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files[id]
}

// remove is called when all that a release does is done.
func (t *handles) remove(h *handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.files, h.id)
	if h.write && t.released != nil {
		close(t.released)
		t.released = nil
	}
}

func (t *handles) addDir(h *dirHandle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	t.dirs[t.lastID] = h
	return t.lastID
}

func (t *handles) dir(id uint64) *dirHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dirs[id]
}

func (t *handles) removeDir(id uint64) *dirHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.dirs[id]
	delete(t.dirs, id)
	return h
}
