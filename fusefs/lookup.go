package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const stale = fuse.Status(unix.ESTALE)

// reserved reports whether name in dir is vfsd's own.
func reserved(dir *node, name string) bool {
	return dir.id == rootID && name == worktree.Reserved
}

// dirOf returns the directory of a request and a hold on its descriptor.
func (f *fileSystem) dirOf(id uint64) (*node, *worktree.Desc, error) {
	n := f.table.get(id)
	if n == nil {
		return nil, nil, unix.ESTALE
	}
	d, err := f.desc(n)
	return n, d, err
}

func (f *fileSystem) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return status(err)
	}
	defer d.Drop()
	if reserved(dir, name) {
		return fuse.ENOENT
	}
	var st worktree.Stat
	err = f.tree.Stat(d.FD(), name, &st)
	if err == unix.ENOENT {
		// An entry without a node: the kernel remembers that there is none.
		out.SetEntryTimeout(f.timeout)
		return fuse.OK
	}
	if err == unix.EXDEV {
		f.warnMount(dir, name)
	}
	if err != nil {
		return status(err)
	}
	f.fillEntry(f.table.enter(dir, name, &st), &st, out)
	return fuse.OK
}

// warnMount says once that something is mounted below the source.
func (f *fileSystem) warnMount(dir *node, name string) {
	f.mountWarning.Do(func() {
		f.log.Warn("a mount below the source is not crossed; what lies in it cannot be reached through this mount",
			"path", f.table.pathIn(dir, name))
	})
}

func (f *fileSystem) Forget(id, count uint64) { f.table.forget(id, count) }

func (f *fileSystem) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	n, d, err := f.dirOf(in.NodeId)
	if err != nil {
		return nil, status(err)
	}
	defer d.Drop()
	if n.kind != sIFLNK {
		return nil, fuse.EINVAL
	}
	text, err := f.tree.Readlink(d.FD())
	return text, status(err)
}

func (f *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var st unix.Statfs_t
	if err := f.tree.Statfs(&st); err != nil {
		return status(err)
	}
	out.Blocks, out.Bfree, out.Bavail = st.Blocks, st.Bfree, st.Bavail
	out.Files, out.Ffree = st.Files, st.Ffree
	out.Bsize, out.Frsize, out.NameLen = uint32(st.Bsize), uint32(st.Frsize), uint32(st.Namelen)
	return fuse.OK
}
