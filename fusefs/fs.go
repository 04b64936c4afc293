package fusefs

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/fusefs/conn"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileSystem answers requests. What it does not implement is ENOSYS, which the kernel remembers:
// ACCESS (it checks permissions itself), STATX (one more request for every stat), IOCTL, BMAP, POLL
// and locks (it keeps them).
type fileSystem struct {
	fuse.RawFileSystem

	tree        *worktree.Direct
	attributor  Attributor // nil where nobody asks
	log         *slog.Logger
	timeout     time.Duration
	exclusive   bool
	passthrough bool // set before the first request is read

	conn     *conn.Conn
	table    *table
	dirs     *dirCache
	handles  *handles
	order    order
	notifier *notifier

	// moving is held by a rename from before it is carried out until the table knows, so that who
	// got lost can wait for it.
	moving       sync.RWMutex
	kept         atomic.Int64 // nodes with opened.kept
	mountWarning sync.Once
}

var _ fuse.RawFileSystem = (*fileSystem)(nil)

func newFileSystem(cfg Config, tree *worktree.Direct, a Attributor, r Recorder, log *slog.Logger) (*fileSystem, error) {
	var st worktree.Stat
	if err := tree.StatFD(tree.Root().FD(), &st); err != nil {
		return nil, err
	}
	f := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		tree:          tree,
		attributor:    a,
		log:           log,
		timeout:       cfg.timeout(),
		exclusive:     cfg.Exclusive,
		dirs:          &dirCache{max: maxCachedDirs},
		handles:       newHandles(),
		order:         order{rec: r},
		notifier:      newNotifier(),
	}
	f.table = newTable(st.ID(), f.forgotten)
	return f, nil
}

// forgotten gives back what a node kept that nobody refers to any more.
func (f *fileSystem) forgotten(n *node) {
	f.dirs.drop(n)
	if n.opened.close() {
		f.kept.Add(-1)
	}
}

func (f *fileSystem) String() string { return "vfsd" }

// OnUnmount gives all descriptors back: after it there are no requests.
func (f *fileSystem) OnUnmount() {
	f.notifier.close()
	f.handles.mu.Lock()
	files, dirs := f.handles.files, f.handles.dirs
	f.handles.files, f.handles.dirs = map[uint64]*handle{}, map[uint64]*dirHandle{}
	f.handles.mu.Unlock()
	for _, h := range files {
		f.release(h)
	}
	for _, h := range dirs {
		h.desc.Drop()
	}
	f.dirs.clear()
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	for _, n := range f.table.byID {
		n.opened.close()
	}
}
