package fusefs

import (
	"maps"
	"slices"
	"sync"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
)

const rootID = 1

// maxLinks bounds how many names of one inode are remembered. More are found again by lookups.
const maxLinks = 16

// link is a name of a node.
type link struct {
	parent *node
	name   string
}

// node is an inode that the kernel, a handle or a child of it refers to.
type node struct {
	id   uint64
	file change.FileID
	kind uint32 // S_IFMT

	// Guarded by table.mu.
	lookups uint64 // what FORGET counts down
	pins    int    // children's links and handles
	links   []link // the last is the one last looked up, made or renamed to
	users   []*handle
	cached  *cachedDir

	opened opened
}

// table holds the nodes.
type table struct {
	mu     sync.Mutex // guards the maps and the fields of node that say so
	byID   map[uint64]*node
	byFile map[change.FileID]*node
	lastID uint64
	left   []*node     // out of the table, for sweep
	gone   func(*node) // is given what left the table
}

func newTable(root change.FileID, gone func(*node)) *table {
	r := &node{id: rootID, file: root, kind: sIFDIR, lookups: 1}
	return &table{
		byID:   map[uint64]*node{rootID: r},
		byFile: map[change.FileID]*node{root: r},
		lastID: rootID,
		gone:   gone,
	}
}

// sweep gives what left the table to gone. The caller holds none of the locks: gone takes the node's own,
// under which others ask for order.mu and mu.
func (t *table) sweep() {
	t.mu.Lock()
	left := t.left
	t.left = nil
	t.mu.Unlock()
	for _, n := range left {
		t.gone(n)
	}
}

// get returns the node of that id, nil where the kernel speaks of one that it forgot.
func (t *table) get(id uint64) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// find returns the node of that file, nil where there is none.
func (t *table) find(f change.FileID) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byFile[f]
}

// all returns the nodes that there are.
func (t *table) all() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byID))
}

// enter returns the node for what was found under name in parent ("" for a nameless file) and
// counts one lookup of the kernel for it.
func (t *table) enter(parent *node, name string, st *worktree.Stat) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := st.ID()
	n := t.byFile[id]
	if n == nil {
		t.lastID++
		n = &node{id: t.lastID, file: id, kind: st.Type()}
		t.byID[n.id] = n
		t.byFile[id] = n
	}
	n.lookups++
	if name != "" {
		t.addLink(n, parent, name, st.Nlink > 1 && n.kind != sIFDIR)
	}
	return n
}

// addLink makes (parent, name) the node's latest name, and its only one unless it may have several.
func (t *table) addLink(n, parent *node, name string, several bool) {
	if n.id == rootID {
		return
	}
	want := link{parent, name}
	last := len(n.links) - 1
	if last >= 0 && n.links[last] == want && (several || last == 0) {
		return
	}
	parent.pins++
	kept := n.links[:0:0]
	for i, l := range n.links {
		if several && l != want && last-i < maxLinks-1 {
			kept = append(kept, l)
		} else {
			t.unpin(l.parent)
		}
	}
	n.links = append(kept, want)
}

// dropLink forgets that n is called name in parent.
func (t *table) dropLink(n, parent *node, name string) {
	for i, l := range n.links {
		if l == (link{parent, name}) {
			n.links = append(n.links[:i:i], n.links[i+1:]...)
			t.unpin(parent)
			return
		}
	}
}

// forget takes away count of the kernel's lookups.
func (t *table) forget(id, count uint64) {
	defer t.sweep()
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil || id == rootID {
		return
	}
	n.lookups -= min(count, n.lookups)
	t.collect(n)
}

func (t *table) pin(n *node) {
	t.mu.Lock()
	n.pins++
	t.mu.Unlock()
}

func (t *table) release(n *node) {
	t.mu.Lock()
	t.unpin(n)
	t.mu.Unlock()
	t.sweep()
}

// use pins the node of a handle that is open from now on, unuse ends that.
func (t *table) use(h *handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.node.pins++
	h.node.users = append(h.node.users, h)
}

func (t *table) unuse(h *handle) {
	defer t.sweep()
	t.mu.Lock()
	defer t.mu.Unlock()
	h.node.users = slices.DeleteFunc(h.node.users, func(u *handle) bool { return u == h })
	t.unpin(h.node)
}

// moveLink makes to the name of n that from was, for the handles that were opened by it too.
func (t *table) moveLink(n *node, from, to link, several bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to.parent.pins++ // neither may go in between
	n.pins++
	t.dropLink(n, from.parent, from.name)
	t.addLink(n, to.parent, to.name, several)
	for _, h := range n.users {
		if h.link == from {
			h.link = to
		}
	}
	to.parent.pins--
	n.pins--
}

func (t *table) unpin(n *node) {
	n.pins--
	t.collect(n)
}

// collect removes n where nobody refers to it any more, and with it what only its links kept.
func (t *table) collect(n *node) {
	if n.lookups > 0 || n.pins > 0 || n.id == rootID || t.byID[n.id] != n {
		return
	}
	delete(t.byID, n.id)
	t.left = append(t.left, n)
	if t.byFile[n.file] == n {
		delete(t.byFile, n.file)
	}
	links := n.links
	n.links = nil
	for _, l := range links {
		t.unpin(l.parent)
	}
}

// names returns a copy of the node's links, the latest first.
func (t *table) names(n *node) []link {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]link, len(n.links))
	for i, l := range n.links {
		out[len(out)-1-i] = l
	}
	return out
}

// name returns the latest link.
func (t *table) name(n *node) (link, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(n.links) == 0 {
		return link{}, false
	}
	return n.links[len(n.links)-1], true
}
