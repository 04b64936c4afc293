package artifact

import "strings"

// nameTree holds the names of files with open entries, one node a path element, so that renaming
// a directory moves one node whatever lies below. It is guarded by Recorder.mu.
type nameTree struct{ root *nameNode }

// nameNode is a directory on the way to a name, a name, or (seen from a missed event) both.
type nameNode struct {
	parent   *nameNode
	name     string
	children map[string]*nameNode
	file     *openFile // whose name this is; nil for a directory
}

func newNameTree() *nameTree { return &nameTree{root: &nameNode{}} }

// path computes the node's path. The root's is "/".
func (n *nameNode) path() string {
	if n.parent == nil {
		return "/"
	}
	size := 0
	for m := n; m.parent != nil; m = m.parent {
		size += len(m.name) + 1
	}
	buf := make([]byte, size)
	for m := n; m.parent != nil; m = m.parent {
		size -= len(m.name)
		copy(buf[size:], m.name)
		size--
		buf[size] = '/'
	}
	return string(buf)
}

// find returns the node at path, nil where there is none.
func (t *nameTree) find(path string) *nameNode {
	n := t.root
	for element := range elements(path) {
		if n = n.children[element]; n == nil {
			return nil
		}
	}
	return n
}

// ensure returns the node at path, making it.
func (t *nameTree) ensure(path string) *nameNode {
	n := t.root
	for element := range elements(path) {
		child := n.children[element]
		if child == nil {
			child = &nameNode{name: element}
			n.adopt(child)
		}
		n = child
	}
	return n
}

func elements(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for e := range strings.SplitSeq(path, "/") {
			if e != "" && !yield(e) {
				return
			}
		}
	}
}

func (n *nameNode) adopt(child *nameNode) {
	if n.children == nil {
		n.children = map[string]*nameNode{}
	}
	n.children[child.name] = child
	child.parent = n
}

// prune removes the node and every ancestor that leads nowhere any more.
func (n *nameNode) prune() {
	for n.parent != nil && n.file == nil && len(n.children) == 0 {
		parent := n.parent
		delete(parent.children, n.name)
		n.parent = nil
		n = parent
	}
}

// detach takes the node at path out of the tree with all that is below; nil where there is none.
func (t *nameTree) detach(path string) *nameNode {
	n := t.find(path)
	if n == nil || n.parent == nil {
		return nil
	}
	parent := n.parent
	delete(parent.children, n.name)
	n.parent = nil
	parent.prune()
	return n
}

// attach puts a detached node at path, where there must be none.
func (t *nameTree) attach(n *nameNode, path string) {
	at := t.ensure(path)
	n.name = at.name
	at.parent.adopt(n)
	at.parent = nil
}

// each calls f for n and all nodes below that are names.
func (n *nameNode) each(f func(*nameNode)) {
	if n.file != nil {
		f(n)
	}
	for _, child := range n.children {
		child.each(f)
	}
}
