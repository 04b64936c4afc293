package fusefs

import (
	"slices"
	"strings"
)

// path is the node's latest name from the root, "" where it has none.
func (t *table) path(n *node) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pathLocked(n, "")
}

// pathOf is the path of the name by which the handle was opened while n still has it, else of the latest
// one. h may be nil.
func (t *table) pathOf(n *node, h *handle) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h != nil && slices.Contains(n.links, h.link) {
		return t.pathLocked(h.link.parent, h.link.name)
	}
	return t.pathLocked(n, "")
}

// pathIn is the path of name in the directory, "" where that has no name itself.
func (t *table) pathIn(dir *node, name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pathLocked(dir, name)
}

func (t *table) pathLocked(n *node, leaf string) string {
	var parts []string
	if leaf != "" {
		parts = append(parts, leaf)
	}
	for n.id != rootID {
		if len(n.links) == 0 {
			return ""
		}
		l := n.links[len(n.links)-1]
		parts = append(parts, l.name)
		n = l.parent
	}
	if len(parts) == 0 {
		return "/"
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(parts[i])
	}
	return b.String()
}
