package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n := f.table.get(in.NodeId)
	if n == nil {
		return stale
	}
	if n.kind != sIFREG {
		return fuse.EINVAL // the kernel opens fifos and sockets itself
	}
	if err := f.room(); err != nil {
		return status(err)
	}
	d, err := f.desc(n)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	var st worktree.Stat
	if err := f.tree.StatFD(d.FD(), &st); err != nil {
		return status(err)
	}
	var who session.Attribution
	if writes(in.Flags) {
		who = f.attribute(&in.InHeader)
	}
	return status(f.open(n, d, false, in.Flags, &st, who, &in.InHeader, out))
}

func writes(flags uint32) bool {
	return flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
}

// open makes a handle of node n, whose inode d stands for. st is what it looks like; it is refreshed
// where the open truncates. made says that d is open for reading and writing, as the inode was just
// made with it.
func (f *fileSystem) open(n *node, d *worktree.Desc, made bool, flags uint32, st *worktree.Stat, who session.Attribution, in *fuse.InHeader, out *fuse.OpenOut) error {
	h := &handle{node: n, flags: int(flags & unix.O_ACCMODE), write: writes(flags), who: who, by: openedBy(in.Pid)}
	if h.write && !made {
		if err := protected(st, flags); err != nil {
			return err
		}
	}
	n.opened.mu.Lock()
	defer n.opened.mu.Unlock()
	if h.write && len(n.opened.writing) > 0 {
		f.recordChanged(n) // what the others did so far is theirs alone
	}
	if err := f.attach(n, d, st, made); err != nil {
		return err
	}
	if err := f.back(h, d, made); err != nil {
		f.detach(n)
		return err
	}
	if h.write {
		if err := f.beginWriting(h, flags&unix.O_TRUNC != 0 && !made, st, in); err != nil {
			f.closeDesc(h)
			f.detach(n)
			return err
		}
	}
	f.table.pin(n)
	f.handles.add(h)
	out.Fh = h.id
	out.OpenFlags = fuse.FOPEN_NOFLUSH
	if n.opened.backing > 0 {
		out.OpenFlags |= fuse.FOPEN_PASSTHROUGH
		out.BackingID = n.opened.backing
	} else if f.exclusive && !f.passthrough && !made {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	}
	return nil
}

// protected is what the disk says to writing a file that chattr protects: with passthrough it would
// say so where the kernel makes EIO of it.
func protected(st *worktree.Stat, flags uint32) error {
	if st.Attributes&unix.STATX_ATTR_IMMUTABLE != 0 {
		return unix.EPERM
	}
	if st.Attributes&unix.STATX_ATTR_APPEND != 0 && (flags&unix.O_APPEND == 0 || flags&unix.O_TRUNC != 0) {
		return unix.EPERM
	}
	return nil
}

// attach makes d the node's descriptor while it is open, and registers it for passthrough. The
// node's lock is held.
func (f *fileSystem) attach(n *node, d *worktree.Desc, st *worktree.Stat, made bool) error {
	o := &n.opened
	switch {
	case o.desc != nil:
	case made:
		// Not d itself: as long as that were there, the kernel's registration included, nobody could
		// be sure that the file is not written any more.
		p, err := f.tree.ReopenPath(d.FD())
		if err != nil {
			return err
		}
		o.desc = p
	default:
		o.desc = d.Hold()
	}
	if o.handles == 0 {
		o.plain = !f.passthrough || setID(st)
		if !o.plain {
			if err := f.register(n); err != nil {
				f.log.Warn("passthrough failed for a file; it is served without", "error", err)
				o.plain = true
			}
		}
	}
	o.handles++
	return nil
}

// detach undoes attach. The node's lock is held.
func (f *fileSystem) detach(n *node) {
	o := &n.opened
	o.handles--
	if o.handles > 0 {
		return
	}
	f.unregister(n)
	o.letGo()
}

// beginWriting makes h one of the handles for writing, and truncates where it is to.
func (f *fileSystem) beginWriting(h *handle, truncate bool, st *worktree.Stat, in *fuse.InHeader) error {
	n := h.node
	n.opened.beginWriting(h, st.Stamp())
	if !truncate {
		return nil
	}
	t, err := f.tree.Reopen(n.opened.desc.FD(), unix.O_WRONLY|unix.O_TRUNC)
	if err == nil {
		defer t.Drop()
		if in.Uid != 0 {
			f.dropSetID(t.FD(), in)
		}
		err = f.tree.StatFD(t.FD(), st)
	}
	if err != nil {
		n.opened.endWriting(h)
		return err
	}
	f.recordWrite(n, st.Stamp(), h.who)
	return nil
}

func (f *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	h := f.handles.file(in.Fh)
	if h == nil {
		return
	}
	f.release(h)
	f.handles.remove(h)
	f.table.release(h.node)
}

func (f *fileSystem) release(h *handle) {
	n := h.node
	o := &n.opened
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.write {
		if f.recordChanged(n) && o.cached {
			o.cached = false
			f.notifier.attributes(n.id)
		}
		o.endWriting(h)
	}
	f.closeDesc(h)
	f.detach(n)
}
