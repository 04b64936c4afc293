package fusefs

import "aimon.at/vfsd/backends/worktree"

// shared is a descriptor that all handles of an inode with one access mode use. Those for writing
// have none in common with those for reading: when the last writer has closed, nothing of ours may
// still look like one.
type shared struct {
	desc    *worktree.Desc
	handles int
}

func (s *shared) join(h *handle) {
	s.handles++
	h.desc = s.desc
}

// share makes d, of which it takes the hold, the descriptor of h's access mode. mu is held.
func (o *opened) share(h *handle, d *worktree.Desc) {
	s := &shared{desc: d}
	if o.shared == nil {
		o.shared = map[int]*shared{}
	}
	o.shared[h.flags] = s
	s.join(h)
}

// unshare takes h's descriptor away, and closes it where h was the last. mu is held.
func (o *opened) unshare(h *handle) {
	s := o.shared[h.flags]
	h.desc = nil
	if s.handles--; s.handles == 0 {
		s.desc.Drop()
		delete(o.shared, h.flags)
	}
}
