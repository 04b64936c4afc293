package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const sIFDIR, sIFREG, sIFLNK = unix.S_IFDIR, unix.S_IFREG, unix.S_IFLNK

func fillAttr(out *fuse.Attr, st *worktree.Stat) {
	out.Ino, out.Size, out.Blocks = st.Ino, st.Size, st.Blocks
	out.Atime, out.Atimensec = uint64(st.Atime.Sec), st.Atime.Nsec
	out.Mtime, out.Mtimensec = uint64(st.Mtime.Sec), st.Mtime.Nsec
	out.Ctime, out.Ctimensec = uint64(st.Ctime.Sec), st.Ctime.Nsec
	out.Mode, out.Nlink = uint32(st.Mode), st.Nlink
	out.Uid, out.Gid = st.Uid, st.Gid
	out.Rdev = uint32(unix.Mkdev(st.Rdev_major, st.Rdev_minor))
	out.Blksize = st.Blksize
}

func (f *fileSystem) fillEntry(n *node, st *worktree.Stat, out *fuse.EntryOut) {
	out.NodeId = n.id
	out.Generation = 1
	out.SetEntryTimeout(f.timeout)
	if n.opened.mayCache() {
		out.SetAttrTimeout(f.timeout)
	}
	fillAttr(&out.Attr, st)
}

func (f *fileSystem) fillAttrOut(n *node, st *worktree.Stat, out *fuse.AttrOut) {
	if n.opened.mayCache() {
		out.SetTimeout(f.timeout)
	}
	fillAttr(&out.Attr, st)
}

func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := f.table.get(in.NodeId)
	if n == nil {
		return stale
	}
	var st worktree.Stat
	if err := f.stat(n, &st); err != nil {
		return status(err)
	}
	f.fillAttrOut(n, &st, out)
	return fuse.OK
}

func (f *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := f.table.get(in.NodeId)
	if n == nil {
		return stale
	}
	d, err := f.desc(n)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	var h *handle
	if id, ok := in.GetFh(); ok {
		h = f.handles.file(id)
	}
	who := f.truncater(n, h, in)
	var st worktree.Stat
	if err := f.setAttr(n, d, h, who, in, &st); err != nil {
		return status(err)
	}
	f.fillAttrOut(n, &st, out)
	return fuse.OK
}

// truncater says who changes the content, where the request does.
func (f *fileSystem) truncater(n *node, h *handle, in *fuse.SetAttrIn) session.Attribution {
	if _, ok := in.GetSize(); !ok || n.kind != sIFREG {
		return session.Attribution{}
	}
	if h != nil && h.write {
		return h.who
	}
	return f.attribute(&in.InHeader)
}

// setAttr carries a change of attributes out, records it and looks at the result. The node's lock is
// held over it, so that what a handle wrote meanwhile is told from what is done here.
func (f *fileSystem) setAttr(n *node, d *worktree.Desc, h *handle, who session.Attribution, in *fuse.SetAttrIn, st *worktree.Stat) error {
	n.opened.mu.Lock()
	defer n.opened.mu.Unlock()
	var before worktree.Stat
	if err := f.tree.StatFD(d.FD(), &before); err != nil {
		return err
	}
	errAttr := f.changeAttr(d, in)
	errSize := errAttr
	if errAttr == nil {
		errSize = f.changeSize(d, h, in)
	}
	var middle worktree.Stat
	if err := f.tree.StatFD(d.FD(), &middle); err != nil {
		return err
	}
	errTimes := errSize
	if errSize == nil {
		errTimes = f.changeTimes(d, in)
	}
	if err := f.tree.StatFD(d.FD(), st); err != nil {
		return err
	}
	if n.kind == sIFREG {
		_, sized := in.GetSize()
		f.recordAttr(n, sized, who, [3]change.Stamp{before.Stamp(), middle.Stamp(), st.Stamp()})
	}
	return errTimes
}

func (f *fileSystem) changeAttr(d *worktree.Desc, in *fuse.SetAttrIn) error {
	uid, setUID := in.GetUID()
	gid, setGID := in.GetGID()
	if setUID || setGID {
		u, g := -1, -1
		if setUID {
			u = int(uid)
		}
		if setGID {
			g = int(gid)
		}
		if err := f.tree.Chown(d.FD(), u, g); err != nil {
			return err
		}
	}
	if mode, ok := in.GetMode(); ok {
		return f.tree.Chmod(d.FD(), mode)
	}
	return nil
}

func (f *fileSystem) changeSize(d *worktree.Desc, h *handle, in *fuse.SetAttrIn) error {
	size, ok := in.GetSize()
	if !ok {
		return nil
	}
	var err error
	if h != nil && h.write && h.desc != nil {
		err = unix.Ftruncate(h.desc.FD(), int64(size))
	} else {
		err = f.tree.Truncate(d.FD(), int64(size))
	}
	if err == nil && in.Valid&fuse.FATTR_KILL_SUIDGID != 0 {
		_, err = f.dropSetID(d.FD(), &in.InHeader)
	}
	return err
}

func (f *fileSystem) changeTimes(d *worktree.Desc, in *fuse.SetAttrIn) error {
	if in.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) == 0 {
		return nil
	}
	pick := func(set, now uint32, sec uint64, nsec uint32) unix.Timespec {
		switch {
		case in.Valid&now != 0:
			return unix.Timespec{Nsec: unix.UTIME_NOW}
		case in.Valid&set != 0:
			return unix.Timespec{Sec: int64(sec), Nsec: int64(nsec)}
		}
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return f.tree.Utimes(d.FD(),
		pick(fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, in.Atime, in.Atimensec),
		pick(fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, in.Mtime, in.Mtimensec))
}
