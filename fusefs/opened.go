package fusefs

import (
	"slices"
	"sync"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// opened is what a node has while it is open, or has lost its last name and is still known to the
// kernel.
type opened struct {
	mu sync.Mutex // guards all below; held while the inode is opened, closed and compared

	desc    *worktree.Desc // O_PATH; nil where it is neither open nor kept
	kept    bool           // it has no name: desc stays until the kernel forgets the node
	handles int
	writing []*handle // those for writing

	backing int32           // id of its registration for passthrough, 0 for none
	plain   bool            // it is open without passthrough
	shared  map[int]*shared // by access mode: the descriptors of its handles

	// seen is the content as last compared, dirty that it changed in a way that seen does not show any
	// more. Meaningful while there are handles for writing.
	seen  change.Stamp
	dirty bool

	// cached says that the kernel may have been told attributes that it trusts for a while.
	cached bool
}

// hold returns a hold on the kept descriptor, nil where there is none.
func (o *opened) hold() *worktree.Desc {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.desc == nil {
		return nil
	}
	return o.desc.Hold()
}

// keep makes d stay until the kernel forgets the node, which lost its last name, and reports whether
// it does from now on. Where nobody has it open it is left if there is no room.
func (o *opened) keep(d *worktree.Desc, room bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept || o.desc == nil && !room {
		return false
	}
	if o.desc == nil {
		o.desc = d.Hold()
	}
	o.kept = true
	return true
}

// letGo drops the descriptor where nothing needs it. mu is held.
func (o *opened) letGo() {
	if o.handles == 0 && !o.kept && o.desc != nil {
		o.desc.Drop()
		o.desc = nil
	}
}

// mayCache reports whether the kernel may trust the attributes that it is about to be told: not
// those of what is open for writing. It notes that it may have.
func (o *opened) mayCache() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.writing) > 0 {
		return false
	}
	o.cached = true
	return true
}

// close takes keep back, as the node has a name again or the kernel forgot it, and reports whether it
// was kept.
func (o *opened) close() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.kept
	o.kept = false
	o.letGo()
	return was
}

// beginWriting adds a handle for writing; now is the content as it begins. mu is held.
func (o *opened) beginWriting(h *handle, now change.Stamp) {
	if len(o.writing) == 0 {
		o.seen, o.dirty = now, false
	}
	o.writing = append(o.writing, h)
	o.compared()
}

// endWriting removes one. mu is held.
func (o *opened) endWriting(h *handle) {
	o.writing = slices.DeleteFunc(o.writing, func(x *handle) bool { return x == h })
}

// attrChanged notes a change of attributes and reports whether nothing else happened: what a handle
// wrote before it and is not recorded yet is left for the next comparison. mu is held.
func (o *opened) attrChanged(before, after change.Stamp) bool {
	if before == after {
		return false
	}
	if len(o.writing) > 0 && o.seen != before {
		o.dirty = true
		return false
	}
	o.seen = after
	return true
}

// contentKept is attrChanged for a change that sets neither size nor times: what a handle wrote while it
// was made shows in them. mu is held.
func (o *opened) contentKept(before, after change.Stamp) bool {
	if before.Size != after.Size || before.Mtime != after.Mtime {
		o.dirty = true
		return false
	}
	return o.attrChanged(before, after)
}

// compared is called when the content was compared: nobody wrote since. mu is held.
func (o *opened) compared() {
	for _, h := range o.writing {
		h.wrote.Store(false)
	}
}

// writers are those who can have made the last change: with passthrough, where writes are not seen,
// all who had it open for writing, in plain mode those who wrote. mu is held.
func (o *opened) writers() []*handle {
	if !o.plain {
		return o.writing
	}
	var out []*handle
	for _, h := range o.writing {
		if h.wrote.Load() {
			out = append(out, h)
		}
	}
	return out
}

// writer is who made the last change, as far as can be told, and the handle that it was made through, nil
// where it was through none. mu is held.
func (o *opened) writer() (*handle, session.Attribution) {
	writers := o.writers()
	if len(writers) == 0 { // it was changed behind the mount
		none := session.Attribution{Sureness: session.None}
		if len(o.writing) > 0 {
			none.ExecutionID = o.writing[0].who.ExecutionID
		}
		return nil, none
	}
	h := writers[len(writers)-1]
	last := h.who
	var ids []string
	certain := true
	for _, w := range writers {
		s := w.who
		certain = certain && s.ToolUseID == last.ToolUseID
		for _, id := range append([]string{s.ToolUseID}, s.Candidates...) {
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if certain {
		return h, last
	}
	return h, session.Attribution{Sureness: session.Ambiguous, ExecutionID: last.ExecutionID, Candidates: ids, Late: last.Late}
}
