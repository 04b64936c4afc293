package fusefs

import (
	"sync"

	"aimon.at/vfsd/fusefs/conn"
)

// notifier tells the kernel what it must not trust any more, from a goroutine of its own.
type notifier struct {
	mu      sync.Mutex // guards all below
	pending map[uint64]bool
	more    *sync.Cond
	closed  bool
}

func newNotifier() *notifier {
	n := &notifier{pending: map[uint64]bool{}}
	n.more = sync.NewCond(&n.mu)
	return n
}

// attributes asks for the attributes of a node to be fetched anew. It does not wait.
func (n *notifier) attributes(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending[id] = true
	n.more.Signal()
}

func (n *notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.more.Signal()
}

// run sends until close.
func (n *notifier) run(c *conn.Conn) {
	for {
		ids := n.next()
		if ids == nil {
			return
		}
		for id := range ids {
			c.InvalidateAttr(id) // the kernel may have forgotten the node
		}
	}
}

func (n *notifier) next() map[uint64]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.pending) == 0 && !n.closed {
		n.more.Wait()
	}
	if n.closed {
		return nil
	}
	ids := n.pending
	n.pending = map[uint64]bool{}
	return ids
}
