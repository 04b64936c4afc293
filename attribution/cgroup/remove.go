package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

const (
	maxWalked = 100_000 // cgroups looked at for leftovers
	eventSize = unix.SizeofInotifyEvent
)

// loop removes cgroups as the kernel tells that they have become empty, and tells what is gone.
func (g *Groups) loop(removed []string) {
	defer close(g.ended)
	g.tell(removed)
	buf := make([]byte, 64<<10)
	for {
		n, err := g.watch.Read(buf)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				g.log.Error("cgroups cannot be watched any more", "err", err)
			}
			return
		}
		g.tell(g.changed(buf[:n]))
	}
}

func (g *Groups) tell(removed []string) {
	for _, p := range removed {
		g.gone(p)
	}
}

// changed handles inotify events and returns the paths of what was removed.
func (g *Groups) changed(events []byte) (removed []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(events) >= eventSize {
		wd := int(int32(binary.NativeEndian.Uint32(events)))
		mask := binary.NativeEndian.Uint32(events[4:])
		length := int(binary.NativeEndian.Uint32(events[12:]))
		events = events[min(eventSize+length, len(events)):]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			removed = append(removed, g.sweep()...)
		} else if c := g.byWD[wd]; c != nil {
			removed = append(removed, g.remove(c)...)
		}
	}
	return removed
}

// sweep tries to remove every cgroup. g.mu is held.
func (g *Groups) sweep() (removed []string) {
	for _, c := range g.groups {
		removed = append(removed, g.remove(c)...)
	}
	return removed
}

// remove removes a cgroup if it is empty, and then those around it that waited for it. g.mu is held.
func (g *Groups) remove(c *group) (removed []string) {
	for c != nil && g.tryRemove(c) {
		g.unfollow(c)
		removed = append(removed, c.path)
		c = g.groups[c.parent]
	}
	return removed
}

// tryRemove reports whether the cgroup is not there any more.
func (g *Groups) tryRemove(c *group) bool {
	dir, err := g.openDir(c.parent)
	if err == nil {
		defer unix.Close(dir)
		// The kernel refuses where there is a process or a cgroup in it.
		err = unix.Unlinkat(dir, path.Base(c.path), unix.AT_REMOVEDIR)
	}
	if err != nil && err != unix.ENOENT {
		if err != unix.EBUSY && err != unix.ENOTEMPTY {
			g.log.Warn("cgroup could not be removed", logPath, c.path, "err", err)
		}
		return false
	}
	return true
}

// follow watches a cgroup. g.mu is held.
func (g *Groups) follow(c *group) error {
	if old := g.groups[c.path]; old != nil {
		g.unfollow(old)
	}
	dir, err := g.openDir(c.path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	// By descriptor: the path can be longer than the kernel takes.
	wd, err := unix.InotifyAddWatch(g.fd, fmt.Sprintf("/proc/self/fd/%d/%s", dir, eventsIn), unix.IN_MODIFY)
	if err != nil {
		return err
	}
	c.wd = wd
	g.groups[c.path], g.byWD[wd] = c, c
	return nil
}

// unfollow ends watching. g.mu is held.
func (g *Groups) unfollow(c *group) {
	delete(g.groups, c.path)
	delete(g.byWD, c.wd)
	_, _ = unix.InotifyRmWatch(g.fd, uint32(c.wd)) // fails where the cgroup is gone: the kernel has removed it then
}

// takeOver removes what is left of an earlier daemon and empty, returning the paths, and watches the rest.
func (g *Groups) takeOver() (removed []string) {
	var found []string
	left := maxWalked
	root := fmt.Sprintf("/proc/self/fd/%d", g.root)
	_ = fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return fs.SkipAll
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir
		case err == nil && d.IsDir() && ours(d.Name()):
			found = append(found, path.Join(g.mount.root, p))
		}
		return nil
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(found) - 1; i >= 0; i-- { // what lies inside another comes first
		c := &group{path: found[i], parent: path.Dir(found[i])}
		if g.adopt(c) {
			removed = append(removed, c.path)
		}
	}
	return removed
}

// adopt watches a leftover, or removes it. It is tried again once it is watched, since it can become empty in
// between.
func (g *Groups) adopt(c *group) (removed bool) {
	if g.tryRemove(c) {
		return true
	}
	if err := g.follow(c); err != nil {
		g.log.Warn("cgroup of an earlier daemon is not watched", logPath, c.path, "err", err)
		return false
	}
	if g.tryRemove(c) {
		g.unfollow(c)
		return true
	}
	return false
}
