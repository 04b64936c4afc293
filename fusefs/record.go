package fusefs

import (
	"sync"
	"time"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// attributeWithin bounds how long a caller waits for the question who it is.
const attributeWithin = 500 * time.Millisecond

// order is the order of events: whoever changes names in the table and records does both in one
// hold, so that the paths of an event are those at its place in the order.
type order struct {
	mu  sync.Mutex
	rec Recorder // nil where nothing is recorded
}

// do changes names and then records the event that build makes, where it makes one.
func (o *order) do(change func(), build func() change.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if change != nil {
		change()
	}
	if o.rec != nil && build != nil {
		o.record(build())
	}
}

// record hands e over unless it is the zero event. mu is held.
func (o *order) record(e change.Event) {
	if o.rec == nil || e.Kind == 0 {
		return
	}
	e.At = time.Now()
	o.rec.Record(e)
}

// attribute asks who the caller is, which is blocked in the request.
func (f *fileSystem) attribute(in *fuse.InHeader) session.Attribution {
	if f.attributor == nil {
		return session.Attribution{}
	}
	ctx := within(attributeWithin)
	defer ctx.over()
	return f.attributor.Attribute(ctx, Caller{PID: in.Pid, UID: in.Uid, GID: in.Gid})
}

// recordWrite records that the content of n is now as in s. Who wrote did so through h, nil where it was
// by a name. The node's lock is held.
func (f *fileSystem) recordWrite(n *node, h *handle, s change.Stamp, who session.Attribution) {
	n.opened.seen, n.opened.dirty = s, false
	f.order.do(nil, func() change.Event {
		return change.Event{Kind: change.Write, File: n.file, Path: f.table.pathOf(n, h), Stamp: s, Who: who}
	})
}

// recordAttr records a SETATTR, which sets the size (sized) or the time of modification (timed) or
// neither: stamps are those before it, after a change of mode, owner and size, and after a change of
// times. The node's lock is held.
func (f *fileSystem) recordAttr(n *node, h *handle, sized, timed bool, who session.Attribution, stamps [3]change.Stamp) {
	before, middle, after := stamps[0], stamps[1], stamps[2]
	wrote := middle.Size != after.Size || !timed && middle.Mtime != after.Mtime // a handle, in between
	switch {
	case sized && before != middle:
		f.recordWrite(n, h, after, who)
		n.opened.dirty = wrote
	case wrote || before.Size != middle.Size || before.Mtime != middle.Mtime:
		n.opened.dirty = true
	default:
		f.touched(n, before, after)
	}
}

// lookBefore looks at n before its attributes are changed. What handles wrote so far is recorded first: it
// would not be told from the change any more. The node's lock is held.
func (f *fileSystem) lookBefore(n *node, d *worktree.Desc, st *worktree.Stat) error {
	if len(n.opened.writing) > 0 {
		f.recordChanged(n)
	}
	return f.tree.StatFD(d.FD(), st)
}

// touched records that attributes of n changed, where its content did not. The node's lock is held.
func (f *fileSystem) touched(n *node, before, after change.Stamp) {
	if n.opened.attrChanged(before, after) {
		f.recordTouch(n, before, after)
	}
}

// touchedOnly is touched for a change that sets neither size nor times. The node's lock is held.
func (f *fileSystem) touchedOnly(n *node, before, after change.Stamp) {
	if n.opened.contentKept(before, after) {
		f.recordTouch(n, before, after)
	}
}

func (f *fileSystem) recordTouch(n *node, before, after change.Stamp) {
	f.order.do(nil, func() change.Event {
		return change.Event{Kind: change.Touch, File: n.file, Path: f.table.path(n), Before: before, Stamp: after}
	})
}

// recordChanged records what was changed through handles since the last look, and has the kernel forget
// what it was told of the file before. The node's lock is held.
func (f *fileSystem) recordChanged(n *node) {
	var st worktree.Stat
	if n.opened.desc == nil || f.tree.StatFD(n.opened.desc.FD(), &st) != nil {
		return
	}
	defer n.opened.compared()
	now := st.Stamp()
	if now == n.opened.seen && !n.opened.dirty {
		return
	}
	h, who := n.opened.writer()
	f.recordWrite(n, h, now, who)
	if n.opened.cached {
		n.opened.cached = false
		f.notifier.attributes(n.id)
	}
}
