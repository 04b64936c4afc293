package fusefs

import (
	"bytes"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The attributes of ours. The first is the user's to set; the facts are answered from the record
// and cannot be set, listed or seen as they may lie on the disk.
const intentXattr = worktree.IntentXattr

// maxXattrList is XATTR_LIST_MAX of linux/limits.h.
const maxXattrList = 64 << 10

func isFact(name string) bool {
	switch name {
	case "user.aimon.tool_use_id", "user.aimon.execution_id", "user.aimon.attribution", "user.aimon.artifact_id":
		return true
	}
	return false
}

func (f *fileSystem) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if isFact(name) {
		return f.fact(in.NodeId, name, dest)
	}
	_, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return 0, status(err)
	}
	defer d.Drop()
	n, err := f.tree.GetXattr(d.FD(), name, dest)
	return uint32(n), status(err)
}

func (f *fileSystem) fact(id uint64, name string, dest []byte) (uint32, fuse.Status) {
	n := f.table.get(id)
	if n == nil {
		return 0, stale
	}
	if n.kind != sIFREG || f.order.rec == nil {
		return 0, fuse.ENODATA
	}
	value, ok := f.order.rec.Fact(n.file, name)
	if !ok {
		return 0, fuse.ENODATA
	}
	return fill(dest, []byte(value))
}

// fill answers GETXATTR and LISTXATTR: an empty dest asks for the size.
func fill(dest, value []byte) (uint32, fuse.Status) {
	if len(dest) > 0 && len(dest) < len(value) {
		return uint32(len(value)), fuse.ERANGE
	}
	copy(dest, value)
	return uint32(len(value)), fuse.OK
}

func (f *fileSystem) ListXAttr(_ <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	_, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return 0, status(err)
	}
	defer d.Drop()
	list, err := f.listXattr(d.FD())
	if err != nil {
		return 0, status(err)
	}
	return fill(dest, visible(list, in.Uid == 0))
}

func (f *fileSystem) listXattr(fd int) ([]byte, error) {
	buf := make([]byte, 1024)
	for {
		n, err := f.tree.ListXattr(fd, buf)
		if err != unix.ERANGE {
			return buf[:n], err
		}
		if len(buf) > maxXattrList {
			return nil, unix.E2BIG
		}
		buf = make([]byte, 4*len(buf))
	}
}

// visible leaves out what is masked, and trusted attributes where the disk would not show them.
func visible(list []byte, privileged bool) []byte {
	var out []byte
	for len(list) > 0 {
		name, rest, _ := bytes.Cut(list, []byte{0})
		if !isFact(string(name)) && (privileged || !bytes.HasPrefix(name, []byte("trusted."))) {
			out = append(append(out, name...), 0)
		}
		list = rest
	}
	return out
}

func (f *fileSystem) SetXAttr(_ <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	return f.changeXattr(&in.InHeader, name, func(d *worktree.Desc) error {
		if err := f.tree.SetXattr(d.FD(), name, value, int(in.Flags)); err != nil {
			return err
		}
		if in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0 {
			return f.dropGroupID(d)
		}
		return nil
	})
}

func (f *fileSystem) RemoveXAttr(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.changeXattr(in, name, func(d *worktree.Desc) error { return f.tree.RemoveXattr(d.FD(), name) })
}

func (f *fileSystem) dropGroupID(d *worktree.Desc) error {
	var st worktree.Stat
	if err := f.tree.StatFD(d.FD(), &st); err != nil || st.Mode&unix.S_ISGID == 0 {
		return err
	}
	return f.tree.Chmod(d.FD(), uint32(st.Mode)&0o7777&^unix.S_ISGID)
}

func (f *fileSystem) changeXattr(in *fuse.InHeader, name string, do func(*worktree.Desc) error) fuse.Status {
	if isFact(name) {
		return fuse.EPERM
	}
	n, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if err := f.touching(n, d, func() error { return do(d) }); err != nil {
		return status(err)
	}
	if name == intentXattr {
		f.recordIntent(n)
	}
	return fuse.OK
}

func (f *fileSystem) recordIntent(n *node) {
	if n.kind != sIFREG && n.kind != sIFDIR {
		return
	}
	f.order.do(nil, func() change.Event {
		return change.Event{Kind: change.Intent, File: n.file, Path: f.table.path(n), Directory: n.kind == sIFDIR}
	})
}

// touching runs a change of attributes that sets neither size nor times, and records it where it was no
// more than that.
func (f *fileSystem) touching(n *node, d *worktree.Desc, do func() error) error {
	if n.kind != sIFREG {
		return do()
	}
	n.opened.mu.Lock()
	defer n.opened.mu.Unlock()
	var before, after worktree.Stat
	if err := f.lookBefore(n, d, &before); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := f.tree.StatFD(d.FD(), &after); err != nil {
		return err
	}
	f.touchedOnly(n, before.Stamp(), after.Stamp())
	return nil
}
