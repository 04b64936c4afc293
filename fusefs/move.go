package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// place is a name in a directory, and what it led to.
type place struct {
	dir   *node
	desc  *worktree.Desc
	name  string
	there bool
	st    worktree.Stat  // before the operation
	kept  *worktree.Desc // see fileSystem.keepable
}

func (f *fileSystem) place(id uint64, name string) (*place, error) {
	dir, d, err := f.dirOf(id)
	if err != nil {
		return nil, err
	}
	return &place{dir: dir, desc: d, name: name}, nil
}

func (p *place) drop() {
	p.desc.Drop()
	p.kept.Drop()
}

func (f *fileSystem) look(p *place) error {
	err := f.tree.Stat(p.desc.FD(), p.name, &p.st)
	p.there = err == nil
	if err == unix.ENOENT {
		return nil
	}
	return err
}

func (f *fileSystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if in.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return fuse.EINVAL
	}
	src, err := f.place(in.NodeId, from)
	if err != nil {
		return status(err)
	}
	defer src.drop()
	dst, err := f.place(in.Newdir, to)
	if err != nil {
		return status(err)
	}
	defer dst.drop()
	if reserved(src.dir, from) || reserved(dst.dir, to) {
		return fuse.EPERM
	}
	return status(f.rename(in, src, dst))
}

func (f *fileSystem) rename(in *fuse.RenameIn, src, dst *place) error {
	if err := f.look(src); err != nil {
		return err
	}
	if !src.there {
		return unix.ENOENT
	}
	var who session.Attribution
	if src.st.IsRegular() || src.st.IsDir() || in.Flags&unix.RENAME_EXCHANGE != 0 {
		who = f.attribute(&in.InHeader)
	}
	f.moving.Lock()
	defer f.moving.Unlock()
	if err := f.look(dst); err != nil {
		return err
	}
	if in.Flags == 0 {
		f.keepable(dst)
	}
	if err := f.tree.Rename(src.desc.FD(), src.name, dst.desc.FD(), dst.name, in.Flags); err != nil {
		return err
	}
	f.moved(src, dst, in.Flags&unix.RENAME_EXCHANGE != 0, who)
	return nil
}

// moved tells the table and the recorder of a rename that was carried out.
func (f *fileSystem) moved(src, dst *place, exchange bool, who session.Attribution) {
	if !exchange && dst.there && src.st.ID() == dst.st.ID() {
		return // two names of one file: rename(2) does nothing
	}
	n, other := f.table.find(src.st.ID()), (*node)(nil)
	if dst.there {
		other = f.table.find(dst.st.ID())
	}
	if !exchange && other != nil {
		f.keepNameless(other, dst)
	}
	now, nowOther := f.after(dst, &src.st), f.after(src, &dst.st)
	f.order.do(func() {
		f.rename1(n, src, dst, &src.st)
		if exchange {
			f.rename1(other, dst, src, &dst.st)
		} else if other != nil {
			f.loseName(other, dst)
		}
	}, func() change.Event { return f.moveEvent(src, dst, exchange, now, nowOther, who) })
	f.touchedBy(n, src.st.Stamp(), now)
	if exchange {
		f.touchedBy(other, dst.st.Stamp(), nowOther)
	} else if other != nil {
		f.touchedKept(other, dst)
	}
}

// after is the stamp of what was st and is at p now.
func (f *fileSystem) after(p *place, st *worktree.Stat) change.Stamp {
	var now worktree.Stat
	if st.IsRegular() && f.tree.Stat(p.desc.FD(), p.name, &now) == nil && now.ID() == st.ID() {
		return now.Stamp()
	}
	return st.Stamp()
}

func (f *fileSystem) rename1(n *node, from, to *place, st *worktree.Stat) {
	if n == nil {
		return
	}
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	to.dir.pins++ // neither may go in between
	n.pins++
	f.table.dropLink(n, from.dir, from.name)
	f.table.addLink(n, to.dir, to.name, st.Nlink > 1 && !st.IsDir())
	to.dir.pins--
	n.pins--
}

// moveEvent builds the event of a rename. What is neither a regular file nor a directory is left
// out: where it replaced a file, that lost its name.
func (f *fileSystem) moveEvent(src, dst *place, exchange bool, now, nowOther change.Stamp, who session.Attribution) change.Event {
	from, to := f.table.pathIn(src.dir, src.name), f.table.pathIn(dst.dir, dst.name)
	known := func(p *place) bool { return p.there && (p.st.IsRegular() || p.st.IsDir()) }
	e := change.Event{From: from, Path: to, Who: who}
	if known(src) {
		e.File, e.Before, e.Stamp = src.st.ID(), src.st.Stamp(), now
	}
	switch {
	case exchange && known(src) && known(dst):
		e.Kind, e.Directory = change.Exchange, src.st.IsDir()
		e.Replaced, e.ReplacedDirectory = dst.st.ID(), dst.st.IsDir()
	case exchange && known(dst):
		e.Kind, e.From, e.Path = kindOfMove(&dst.st), to, from
		e.File, e.Before, e.Stamp = dst.st.ID(), dst.st.Stamp(), nowOther
	case known(src):
		e.Kind = kindOfMove(&src.st)
		if !exchange && dst.there && dst.st.IsRegular() {
			e.Replaced = dst.st.ID()
		}
	case dst.there && dst.st.IsRegular():
		return change.Event{Kind: change.Unlink, File: dst.st.ID(), Path: to, Last: dst.st.Nlink == 1, Stamp: dst.st.Stamp()}
	}
	if e.Kind == change.RenameDir {
		e.Directory = true
	}
	return e
}

func kindOfMove(st *worktree.Stat) change.Kind {
	if st.IsDir() {
		return change.RenameDir
	}
	return change.Rename
}

// touchedBy records that giving n another name changed its attributes.
func (f *fileSystem) touchedBy(n *node, before, after change.Stamp) {
	if n == nil || n.kind != sIFREG {
		return
	}
	n.opened.mu.Lock()
	defer n.opened.mu.Unlock()
	f.changedName(n, before, after)
}

// changedName is touched for a change that was not made under the node's lock. The node's lock is
// held.
func (f *fileSystem) changedName(n *node, before, after change.Stamp) {
	if n.opened.nameChanged(before, after) {
		f.recordTouch(n, before, after)
	}
}

func (f *fileSystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	to, err := f.place(in.NodeId, name)
	if err != nil {
		return status(err)
	}
	defer to.drop()
	if reserved(to.dir, name) {
		return fuse.EPERM
	}
	n, d, err := f.dirOf(in.Oldnodeid)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	return status(f.link(in, n, d, to, out))
}

func (f *fileSystem) link(in *fuse.LinkIn, n *node, d *worktree.Desc, to *place, out *fuse.EntryOut) error {
	var who session.Attribution
	if n.kind == sIFREG {
		who = f.attribute(&in.InHeader)
	}
	var before worktree.Stat
	if err := f.tree.StatFD(d.FD(), &before); err != nil {
		return err
	}
	if err := f.tree.Link(d.FD(), to.desc.FD(), to.name); err != nil {
		return err
	}
	if err := f.tree.StatFD(d.FD(), &to.st); err != nil {
		return err
	}
	var from string
	f.order.do(func() {
		from = f.table.path(n)
		f.table.enter(to.dir, to.name, &to.st)
	}, func() change.Event {
		if n.kind != sIFREG {
			return change.Event{}
		}
		return change.Event{Kind: change.Link, File: n.file, From: from, Path: f.table.pathIn(to.dir, to.name),
			Before: before.Stamp(), Stamp: to.st.Stamp(), Who: who}
	})
	if n.opened.close() {
		f.kept.Add(-1)
	}
	f.touchedBy(n, before.Stamp(), to.st.Stamp())
	f.fillEntry(n, &to.st, out)
	return nil
}
