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

// recordWrite records that the content of n is now as in s. The node's lock is held.
func (f *fileSystem) recordWrite(n *node, s change.Stamp, who session.Attribution) {
	n.opened.seen, n.opened.dirty = s, false
	f.order.do(nil, func() change.Event {
		return change.Event{Kind: change.Write, File: n.file, Path: f.table.path(n), Stamp: s, Who: who}
	})
}

// recordAttr records a SETATTR: stamps are those before it, after a change of mode, owner and
// size, and after a change of times. The node's lock is held.
func (f *fileSystem) recordAttr(n *node, sized bool, who session.Attribution, stamps [3]change.Stamp) {
	before, middle, after := stamps[0], stamps[1], stamps[2]
	if sized && before != middle {
		f.recordWrite(n, after, who)
		return
	}
	if !sized && (before.Size != middle.Size || before.Mtime != middle.Mtime || middle.Size != after.Size) {
		n.opened.dirty = true // a handle wrote in between
	}
	f.touched(n, before, after)
}

// touched records that attributes of n changed and its content did not. The node's lock is held.
func (f *fileSystem) touched(n *node, before, after change.Stamp) {
	if before != after {
		n.opened.attrChanged(before, after)
		f.recordTouch(n, before, after)
	}
}

func (f *fileSystem) recordTouch(n *node, before, after change.Stamp) {
	f.order.do(nil, func() change.Event {
		return change.Event{Kind: change.Touch, File: n.file, Path: f.table.path(n), Before: before, Stamp: after}
	})
}

// recordChanged records what was changed through handles since the last look, and reports whether
// there was anything. The node's lock is held.
func (f *fileSystem) recordChanged(n *node) bool {
	var st worktree.Stat
	if n.opened.desc == nil || f.tree.StatFD(n.opened.desc.FD(), &st) != nil {
		return false
	}
	defer n.opened.suspect()
	now := st.Stamp()
	if now == n.opened.seen && !n.opened.dirty {
		return false
	}
	f.recordWrite(n, now, n.opened.writer())
	return true
}
