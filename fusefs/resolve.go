package fusefs

import (
	"slices"
	"strings"

	"aimon.at/vfsd/backends/worktree"
	"golang.org/x/sys/unix"
)

// maxWalk is how many bytes of path one openat2 call is given.
const maxWalk = 4000

// desc returns a descriptor of the node's inode, of which the caller gets a hold: a kept one where
// there is one, else one found by its names. It is ESTALE where none leads to it any more.
func (f *fileSystem) desc(n *node) (d *worktree.Desc, err error) {
	err = f.settled(func() error {
		d, err = f.descOnce(n)
		return err
	})
	return d, err
}

func (f *fileSystem) descOnce(n *node) (*worktree.Desc, error) {
	if n.id == rootID || n.kind == sIFDIR {
		return f.dirDescOnce(n)
	}
	if d := n.opened.hold(); d != nil {
		return d, nil
	}
	var found *worktree.Desc
	err := f.byName(n, func(dir int, name string) error {
		d, err := f.tree.Handle(dir, name)
		if err != nil {
			return err
		}
		var st worktree.Stat
		if err := f.tree.StatFD(d.FD(), &st); err != nil || st.ID() != n.file {
			d.Drop()
			return unix.ESTALE
		}
		found = d
		return nil
	})
	return found, err
}

// stat looks at the node's inode without opening it where it need not be.
func (f *fileSystem) stat(n *node, st *worktree.Stat) error {
	return f.settled(func() error { return f.statOnce(n, st) })
}

func (f *fileSystem) statOnce(n *node, st *worktree.Stat) error {
	d := n.opened.hold()
	if d == nil && n.kind == sIFDIR {
		var err error
		if d, err = f.dirDescOnce(n); err != nil {
			return err
		}
	}
	if d != nil {
		defer d.Drop()
		return f.tree.StatFD(d.FD(), st)
	}
	return f.byName(n, func(dir int, name string) error {
		if err := f.tree.Stat(dir, name, st); err != nil {
			return err
		}
		if st.ID() != n.file {
			return unix.ESTALE
		}
		return nil
	})
}

// byName tries the node's names, the latest first, until one leads to it.
func (f *fileSystem) byName(n *node, try func(dir int, name string) error) error {
	for _, l := range f.table.names(n) {
		dir, err := f.dirDescOnce(l.parent)
		if err == nil {
			err = try(dir.FD(), l.name)
			dir.Drop()
		}
		if err == nil || !lost(err) {
			return err
		}
	}
	return unix.ESTALE
}

// lost reports whether err means that a name does not lead where it did.
func lost(err error) bool {
	return err == unix.ENOENT || err == unix.ESTALE || err == unix.ENOTDIR || err == unix.ELOOP || err == unix.EXDEV
}

// settled runs look, and where it got lost once more with no rename through the mount under way: that
// has moved the inode already and tells the table in a moment.
func (f *fileSystem) settled(look func() error) error {
	err := look()
	if err == nil || !lost(err) {
		return err
	}
	f.moving.RLock()
	defer f.moving.RUnlock()
	if err = look(); err != nil && lost(err) {
		return unix.ESTALE
	}
	return err
}

func (f *fileSystem) dirDescOnce(n *node) (*worktree.Desc, error) {
	if n.id == rootID {
		return f.tree.Root().Hold(), nil
	}
	if d := f.dirs.get(n); d != nil {
		return d, nil
	}
	if d := n.opened.hold(); d != nil {
		return d, nil
	}
	d, err := f.walk(n)
	if err == unix.EMFILE || err == unix.ENFILE {
		f.dirs.shrink()
		d, err = f.walk(n)
	}
	if err != nil {
		return nil, err
	}
	f.dirs.put(n, d)
	return d, nil
}

// walk opens a directory from its nearest ancestor with a cached descriptor.
func (f *fileSystem) walk(n *node) (*worktree.Desc, error) {
	at, names, err := f.ancestor(n)
	if err != nil {
		return nil, err
	}
	slices.Reverse(names)
	for len(names) > 0 {
		step := stride(names)
		next, err := f.tree.HandleDir(at.FD(), strings.Join(names[:step], "/"))
		at.Drop()
		if err != nil {
			return nil, err
		}
		at, names = next, names[step:]
	}
	var st worktree.Stat
	if err := f.tree.StatFD(at.FD(), &st); err != nil || st.ID() != n.file {
		at.Drop()
		return nil, unix.ESTALE
	}
	return at, nil
}

// ancestor returns the nearest cached directory above n and the names from n up to it.
func (f *fileSystem) ancestor(n *node) (*worktree.Desc, []string, error) {
	var names []string
	for n.id != rootID {
		l, ok := f.table.name(n)
		if !ok {
			return nil, nil, unix.ESTALE
		}
		names = append(names, l.name)
		n = l.parent
		if d := f.dirs.get(n); d != nil {
			return d, names, nil
		}
	}
	return f.tree.Root().Hold(), names, nil
}

// stride is how many of names fit into one walk.
func stride(names []string) int {
	length := 0
	for i, name := range names {
		if length += len(name) + 1; length > maxWalk && i > 0 {
			return i
		}
	}
	return len(names)
}
