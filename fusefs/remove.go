package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxKept bounds the descriptors of files without a name that are not open.
const maxKept = 2048

func (f *fileSystem) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in, name, f.tree.Unlink)
}

func (f *fileSystem) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in, name, f.tree.Rmdir)
}

func (f *fileSystem) remove(in *fuse.InHeader, name string, remove func(int, string) error) fuse.Status {
	p, err := f.place(in.NodeId, name)
	if err != nil {
		return status(err)
	}
	defer p.drop()
	if reserved(p.dir, name) {
		return fuse.EPERM
	}
	if err := f.look(p); err != nil {
		return status(err)
	}
	f.keepable(p)
	if err := remove(p.desc.FD(), name); err != nil {
		return status(err)
	}
	if p.there {
		f.removed(p)
	}
	return fuse.OK
}

// keepable takes a descriptor of what is about to lose the name p: the kernel may still have it
// open, be in it or hold it by O_PATH, and no name may lead to it any more.
func (f *fileSystem) keepable(p *place) {
	if !p.there {
		return
	}
	n := f.table.find(p.st.ID())
	if n == nil {
		return
	}
	var d *worktree.Desc
	if d = n.opened.hold(); d == nil && n.kind == sIFDIR {
		d = f.dirs.get(n)
	}
	if d == nil {
		d, _ = f.tree.Handle(p.desc.FD(), p.name)
	}
	p.kept = d
}

// removed tells the table and the recorder that the name is gone.
func (f *fileSystem) removed(p *place) {
	defer f.table.sweep()
	n := f.table.find(p.st.ID())
	last := p.st.Nlink <= 1
	if n != nil {
		f.keepNameless(n, p)
	}
	f.order.do(func() {
		if n != nil {
			f.loseName(n, p)
		}
	}, func() change.Event {
		if !p.st.IsRegular() {
			return change.Event{}
		}
		return change.Event{Kind: change.Unlink, File: p.st.ID(), Path: f.table.pathIn(p.dir, p.name), Last: last, Stamp: p.st.Stamp()}
	})
	if n != nil {
		f.touchedKept(n, p)
	}
}

// keepNameless keeps n, which lost its last name p, until the kernel forgets it: of what is open
// always, otherwise as far as the bound allows.
func (f *fileSystem) keepNameless(n *node, p *place) {
	if p.kept == nil || !p.st.IsDir() && p.st.Nlink > 1 {
		return
	}
	if n.opened.keep(p.kept, f.kept.Load() < maxKept && !worktree.Scarce()) {
		f.kept.Add(1)
	}
}

// loseName forgets the name p of n.
func (f *fileSystem) loseName(n *node, p *place) {
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	f.table.dropLink(n, p.dir, p.name)
}

// touchedKept records what losing a name did to the attributes of a file that has others, or is open.
func (f *fileSystem) touchedKept(n *node, p *place) {
	if n.kind != sIFREG || p.kept == nil {
		return
	}
	n.opened.mu.Lock()
	defer n.opened.mu.Unlock()
	last := p.st.Nlink <= 1
	if last && len(n.opened.writing) == 0 {
		return
	}
	var after worktree.Stat
	if f.tree.StatFD(p.kept.FD(), &after) != nil {
		return
	}
	if last {
		n.opened.contentKept(p.st.Stamp(), after.Stamp())
		return
	}
	f.touchedOnly(n, p.st.Stamp(), after.Stamp())
}
