package fusefs

import (
	"time"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

func owner(in *fuse.InHeader) worktree.Owner { return worktree.Owner{UID: in.Uid, GID: in.Gid} }

// mode is what a new inode in dir is made with. Where the tree keeps ACLs the kernel leaves the
// caller's umask to us, as a default ACL takes its place.
func (f *fileSystem) mode(dir *worktree.Desc, mode, umask uint32) uint32 {
	if !f.tree.HasACL() || mode&umask&0o777 == 0 {
		return mode
	}
	if _, err := f.tree.GetXattr(dir.FD(), "system.posix_acl_default", nil); err == nil {
		return mode
	}
	return mode &^ (umask & 0o777)
}

func (f *fileSystem) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	dir, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if reserved(dir, name) {
		return fuse.EPERM
	}
	if err := f.room(); err != nil {
		return status(err)
	}
	who := f.attribute(&in.InHeader)
	made, err := f.tree.Create(d.FD(), name, f.mode(d, in.Mode, in.Umask), owner(&in.InHeader))
	if err == unix.EEXIST && in.Flags&unix.O_EXCL == 0 {
		return f.createExisting(dir, d, in, name, who, out)
	}
	if err != nil {
		return status(err)
	}
	defer made.Drop()
	return status(f.begin(dir, name, made, in, who, out))
}

func (f *fileSystem) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	dir, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if err := f.room(); err != nil {
		return status(err)
	}
	who := f.attribute(&in.InHeader)
	made, err := f.tree.Tmpfile(d.FD(), f.mode(d, in.Mode, in.Umask), in.Flags&unix.O_EXCL != 0, owner(&in.InHeader))
	if err != nil {
		return status(err)
	}
	defer made.Drop()
	return status(f.begin(dir, "", made, in, who, out))
}

// fresh is how long the kernel may trust the attributes of a new file: most programs look at it
// right after they made it. The kernel itself knows what is written to it but by a mapping, which
// moves the times alone, and in less than this by no more than a tick of the clock.
const fresh = 10 * time.Millisecond

// begin opens what was just made with the descriptor that made it.
func (f *fileSystem) begin(dir *node, name string, made *worktree.Desc, in *fuse.CreateIn, who session.Attribution, out *fuse.CreateOut) error {
	var st worktree.Stat
	if err := f.tree.StatFD(made.FD(), &st); err != nil {
		return err
	}
	n := f.table.enter(dir, name, &st)
	if err := f.open(n, made, true, in.Flags, &st, who, &in.InHeader, &out.OpenOut); err != nil {
		f.table.forget(n.id, 1)
		return err
	}
	f.fillEntry(n, &st, &out.EntryOut)
	out.SetAttrTimeout(min(f.timeout, fresh))
	f.order.do(nil, func() change.Event {
		e := change.Event{Kind: change.Write, File: n.file, Stamp: st.Stamp(), Who: who}
		if name != "" {
			e.Path = f.table.pathIn(dir, name)
		}
		return e
	})
	return nil
}

// createExisting answers a CREATE that found the name taken: the tree was changed behind the mount.
func (f *fileSystem) createExisting(dir *node, d *worktree.Desc, in *fuse.CreateIn, name string, who session.Attribution, out *fuse.CreateOut) fuse.Status {
	var st worktree.Stat
	found, err := f.tree.Handle(d.FD(), name)
	if err == nil {
		defer found.Drop()
		err = f.tree.StatFD(found.FD(), &st)
	}
	if err != nil || !st.IsRegular() {
		return stale // the kernel looks it up again
	}
	n := f.table.enter(dir, name, &st)
	if err := f.open(n, found, false, in.Flags, &st, who, &in.InHeader, &out.OpenOut); err != nil {
		f.table.forget(n.id, 1)
		return status(err)
	}
	f.fillEntry(n, &st, &out.EntryOut)
	return fuse.OK
}

func (f *fileSystem) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	regular := in.Mode&unix.S_IFMT == sIFREG || in.Mode&unix.S_IFMT == 0
	var who session.Attribution
	if regular {
		who = f.attribute(&in.InHeader)
	}
	return f.makeEntry(&in.InHeader, name, out, func(d *worktree.Desc) error {
		return f.tree.Mknod(d.FD(), name, f.mode(d, in.Mode, in.Umask), owner(&in.InHeader))
	}, func(dir, n *node, s change.Stamp) change.Event {
		if n.kind != sIFREG {
			return change.Event{}
		}
		return change.Event{Kind: change.Write, File: n.file, Path: f.table.pathIn(dir, name), Stamp: s, Who: who}
	})
}

func (f *fileSystem) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.makeEntry(&in.InHeader, name, out, func(d *worktree.Desc) error {
		return f.tree.Mkdir(d.FD(), name, f.mode(d, in.Mode, in.Umask), owner(&in.InHeader))
	}, nil)
}

func (f *fileSystem) Symlink(_ <-chan struct{}, in *fuse.InHeader, text, name string, out *fuse.EntryOut) fuse.Status {
	return f.makeEntry(in, name, out, func(d *worktree.Desc) error {
		return f.tree.Symlink(d.FD(), name, text, owner(in))
	}, nil)
}

// makeEntry makes a name without opening it, and records the event of it where there is one.
func (f *fileSystem) makeEntry(in *fuse.InHeader, name string, out *fuse.EntryOut,
	make func(*worktree.Desc) error, event func(dir, n *node, s change.Stamp) change.Event) fuse.Status {
	dir, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if reserved(dir, name) {
		return fuse.EPERM
	}
	if err := make(d); err != nil {
		return status(err)
	}
	var st worktree.Stat
	if err := f.tree.Stat(d.FD(), name, &st); err != nil {
		return status(err)
	}
	n := f.table.enter(dir, name, &st)
	if event != nil {
		f.order.do(nil, func() change.Event { return event(dir, n, st.Stamp()) })
	}
	f.fillEntry(n, &st, out)
	return fuse.OK
}
