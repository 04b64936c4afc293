package fusefs

import (
	"fmt"

	"aimon.at/vfsd/backends/worktree"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// register makes the node's file known to the kernel, to read and write it without us. One
// registration serves all handles: the kernel refuses a second one for an inode that is open. The
// node's lock is held.
func (f *fileSystem) register(n *node) error {
	id, err := f.conn.Back(n.opened.desc.FD())
	if err != nil {
		return err
	}
	n.opened.backing = id
	return nil
}

func (f *fileSystem) unregister(n *node) {
	if n.opened.backing > 0 {
		f.conn.Unback(n.opened.backing)
		n.opened.backing = 0
	}
}

// tryPassthrough finds out whether the kernel takes files of the source as backing files.
func (f *fileSystem) tryPassthrough() error {
	if terms := f.conn.Terms(); terms.Flags64()&fuse.CAP_PASSTHROUGH == 0 {
		return fmt.Errorf("the kernel has none (it came with Linux 6.9)")
	}
	d, err := f.tree.Tmpfile(f.tree.Root().FD(), 0o600, true, worktree.Owner{})
	if err != nil {
		return fmt.Errorf("a trial file in the source: %w", err)
	}
	defer d.Drop()
	id, err := f.conn.Back(d.FD())
	if err != nil {
		return fmt.Errorf("the kernel does not take files of the source: %w", err)
	}
	return f.conn.Unback(id)
}

// back gives a handle its own descriptor where the kernel does not read and write by itself. made
// says that d, which made the file, can serve. The node's lock is held.
func (f *fileSystem) back(h *handle, d *worktree.Desc, made bool) error {
	if !h.node.opened.plain {
		return nil
	}
	if made && h.flags != unix.O_RDONLY {
		h.node.opened.share(h, d.Hold())
		return nil
	}
	err := f.openDesc(h)
	if err != nil && made { // its mode may not let a daemon without privilege in a second time
		h.node.opened.share(h, d.Hold())
		return nil
	}
	return err
}

// own returns the handle's descriptor, opening it first where it has none. The caller gets a hold, and
// where descriptors are scarce the only one.
func (f *fileSystem) own(h *handle) (*worktree.Desc, error) {
	o := &h.node.opened
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.desc == nil {
		if worktree.Scarce() {
			return f.tree.Reopen(o.desc.FD(), h.flags)
		}
		if err := f.openDesc(h); err != nil {
			return nil, err
		}
	}
	return h.desc.Hold(), nil
}

// openDesc opens with the handle's access mode alone: O_APPEND would send what the kernel writes at
// an offset of its own to the end, O_DIRECT asks for aligned memory.
//
// Handles of one access mode share a descriptor: offsets come with the requests.
func (f *fileSystem) openDesc(h *handle) error {
	o := &h.node.opened
	if s := o.shared[h.flags]; s != nil {
		s.join(h)
		return nil
	}
	d, err := f.tree.Reopen(o.desc.FD(), h.flags)
	if err == unix.EMFILE && f.dirs.shrink() {
		d, err = f.tree.Reopen(o.desc.FD(), h.flags)
	}
	if err != nil {
		return err
	}
	o.share(h, d)
	return nil
}

func (f *fileSystem) closeDesc(h *handle) {
	if h.desc != nil {
		h.node.opened.unshare(h)
	}
}
