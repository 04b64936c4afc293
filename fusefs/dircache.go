package fusefs

import (
	"container/list"
	"sync"

	"aimon.at/vfsd/backends/worktree"
)

// maxCachedDirs bounds the descriptors of directories that nobody uses.
const maxCachedDirs = 2048

// dirCache keeps descriptors of the directories used last.
type dirCache struct {
	mu   sync.Mutex // guards all, and node.cached
	used list.List  // of *cachedDir, the latest first
	max  int
}

type cachedDir struct {
	node *node
	desc *worktree.Desc
	at   *list.Element
}

// get returns a hold on the directory's descriptor, nil where none is cached.
func (c *dirCache) get(n *node) *worktree.Desc {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cached == nil {
		return nil
	}
	c.used.MoveToFront(n.cached.at)
	return n.cached.desc.Hold()
}

// put caches a descriptor, of which the cache gets a hold of its own.
func (c *dirCache) put(n *node, d *worktree.Desc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cached != nil {
		return
	}
	e := &cachedDir{node: n, desc: d.Hold()}
	e.at = c.used.PushFront(e)
	n.cached = e
	for c.used.Len() > c.max {
		c.evict(c.used.Back().Value.(*cachedDir))
	}
}

// drop forgets the node's descriptor.
func (c *dirCache) drop(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.cached != nil {
		c.evict(n.cached)
	}
}

// shrink gives up half of the descriptors, for when the process runs short of them, and reports
// whether there were any.
func (c *dirCache) shrink() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.used.Len()
	for keep := was / 2; c.used.Len() > keep; {
		c.evict(c.used.Back().Value.(*cachedDir))
	}
	return was > 0
}

func (c *dirCache) evict(e *cachedDir) {
	c.used.Remove(e.at)
	e.node.cached = nil
	e.desc.Drop()
}

// clear gives up all of them.
func (c *dirCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.used.Len() > 0 {
		c.evict(c.used.Back().Value.(*cachedDir))
	}
}
