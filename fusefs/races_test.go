package fusefs

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// direct is a file system whose requests the test makes itself, so that what happens between two of
// their steps is the test's to say. No kernel is in between.
type direct struct {
	t        *testing.T
	dir      string
	fs       *fileSystem
	recorded []change.Event
	who      string
	asked    func() // runs while somebody is asked for
}

func (d *direct) Record(e change.Event)                     { d.recorded = append(d.recorded, e) }
func (d *direct) Fact(change.FileID, string) (string, bool) { return "", false }

func (d *direct) Attribute(context.Context, Caller) session.Attribution {
	a := session.Attribution{Sureness: session.Declared, ToolUseID: d.who, ExecutionID: "e"}
	if asked := d.asked; asked != nil {
		d.asked = nil
		asked()
	}
	return a
}

func newDirect(t *testing.T) *direct {
	d := &direct{t: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "f"), []byte("old"), 0o644))
	tree, err := worktree.Open(d.dir)
	require.NoError(t, err)
	d.fs, err = newFileSystem(Config{}, tree, d, d, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		d.fs.OnUnmount()
		require.NoError(t, tree.Close())
	})
	return d
}

func (d *direct) lookup(name string) *node {
	var out fuse.EntryOut
	require.Equal(d.t, fuse.OK, d.fs.Lookup(nil, &fuse.InHeader{NodeId: rootID}, name, &out))
	return d.fs.table.get(out.NodeId)
}

// open opens n for reading and writing as a tool use.
func (d *direct) open(n *node, who string) uint64 {
	d.who = who
	var out fuse.OpenOut
	in := &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: n.id}, Flags: unix.O_RDWR}
	require.Equal(d.t, fuse.OK, d.fs.Open(nil, in, &out))
	return out.Fh
}

func (d *direct) write(fh uint64, text string) {
	_, st := d.fs.Write(nil, &fuse.WriteIn{Fh: fh}, []byte(text))
	require.Equal(d.t, fuse.OK, st)
}

func (d *direct) release(fh uint64) { d.fs.Release(nil, &fuse.ReleaseIn{Fh: fh}) }

// story tells what happened since the last call.
func (d *direct) story() []string {
	events := d.recorded
	d.recorded = nil
	return story(events)
}

// setattr is a SETATTR of the fields in valid by a tool use that has no handle.
func (d *direct) setattr(n *node, who string, in fuse.SetAttrIn) {
	d.who = who
	in.NodeId = n.id
	var out fuse.AttrOut
	require.Equal(d.t, fuse.OK, d.fs.SetAttr(nil, &in, &out))
}

// TestWriteDuringAttributes: bytes of the same size that are written while an attribute is set are a
// write. A Touch would carry what is known of the old bytes over to them.
func TestWriteDuringAttributes(t *testing.T) {
	d := newDirect(t)
	n := d.lookup("f")
	fh := d.open(n, "a")
	desc, err := d.fs.desc(n)
	require.NoError(t, err)
	defer desc.Drop()
	require.NoError(t, d.fs.touching(n, desc, func() error {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, "f"), []byte("new"), 0o644))
		return d.fs.tree.SetXattr(desc.FD(), "user.x", []byte("x"), 0)
	}))
	require.Empty(t, d.story())
	d.release(fh)
	require.Len(t, d.story(), 1)
	require.NoError(t, d.fs.touching(n, desc, func() error {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, "f"), []byte("two"), 0o644))
		return d.fs.tree.Chmod(desc.FD(), 0o600)
	}))
	require.Empty(t, d.story(), "nobody has it open: it was changed behind the mount")
}

// TestWriteBeforeAttributes: what is written and not recorded yet is recorded before the change of
// attributes.
func TestWriteBeforeAttributes(t *testing.T) {
	for name, set := range map[string]fuse.SetAttrIn{
		"chmod":  {SetAttrInCommon: fuse.SetAttrInCommon{Valid: fuse.FATTR_MODE, Mode: 0o600}},
		"utimes": {SetAttrInCommon: fuse.SetAttrInCommon{Valid: fuse.FATTR_MTIME, Mtime: 1e9}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirect(t)
			n := d.lookup("f")
			fh := d.open(n, "a")
			d.write(fh, "new")
			d.setattr(n, "b", set)
			require.Equal(t, []string{"write #1 /f (3) by a", "touch #1 /f"}, d.story())
			d.release(fh)
			require.Empty(t, d.story())
		})
	}
}

// TestOpenDuringWrite: somebody writes and closes while it is found out who opens the file. Who opened it
// and wrote nothing has written nothing.
func TestOpenDuringWrite(t *testing.T) {
	d := newDirect(t)
	n := d.lookup("f")
	a := d.open(n, "a")
	d.asked = func() {
		d.write(a, "longer")
		d.release(a)
	}
	b := d.open(n, "b")
	d.release(b)
	require.Equal(t, []string{"write #1 /f (6) by a"}, d.story())
}

// TestTruncatedByAnother: what one wrote is recorded as its own before another truncates the file.
func TestTruncatedByAnother(t *testing.T) {
	for name, by := range map[string]func(d *direct, n *node){
		"path": func(d *direct, n *node) {
			d.setattr(n, "b", fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{Valid: fuse.FATTR_SIZE, Size: 1}})
		},
		"handle": func(d *direct, n *node) {
			fh := d.open(n, "b")
			d.recorded = nil // opening records too
			d.write(n.opened.writing[0].id, "longer")
			d.setattr(n, "b", fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{Valid: fuse.FATTR_SIZE | fuse.FATTR_FH, Fh: fh, Size: 1}})
			d.release(fh)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirect(t)
			n := d.lookup("f")
			a := d.open(n, "a")
			d.write(a, "longer")
			by(d, n)
			d.release(a)
			require.Equal(t, []string{"write #1 /f (6) by a", "write #1 /f (1) by b"}, d.story())
		})
	}
}

// TestOpenedName: of several names, a write is shown under the one that the file was opened by, whatever
// is looked up meanwhile, and follows it when it is renamed.
func TestOpenedName(t *testing.T) {
	for name, c := range map[string]struct {
		between func(d *direct)
		want    []string
	}{
		"looked up": {func(d *direct) { d.lookup("g") }, []string{"write #1 /f (6) by a"}},
		"renamed": {func(d *direct) {
			require.Equal(t, fuse.OK, d.fs.Rename(nil, &fuse.RenameIn{InHeader: fuse.InHeader{NodeId: rootID}, Newdir: rootID}, "f", "h"))
			d.lookup("g")
		}, []string{"rename #1 /f -> /h by a", "touch #1 /h", "write #1 /h (6) by a"}},
		"removed": {func(d *direct) {
			require.Equal(t, fuse.OK, d.fs.Unlink(nil, &fuse.InHeader{NodeId: rootID}, "f"))
		}, []string{"unlink #1 /f", "touch #1 /g", "write #1 /g (6) by a"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirect(t)
			require.NoError(t, os.Link(filepath.Join(d.dir, "f"), filepath.Join(d.dir, "g")))
			d.lookup("g")
			fh := d.open(d.lookup("f"), "a")
			c.between(d)
			d.write(fh, "longer")
			d.release(fh)
			require.Equal(t, c.want, d.story())
		})
	}
}

// TestForgottenWhileLocked: a node can leave the table while somebody who found it by its file still works
// on it and asks for its path.
func TestForgottenWhileLocked(t *testing.T) {
	d := newDirect(t)
	n := d.lookup("f")
	n.opened.mu.Lock()
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		d.fs.Forget(n.id, 1)
	}()
	require.Eventually(t, func() bool {
		return d.fs.table.mu.TryLock() && func() bool { defer d.fs.table.mu.Unlock(); return d.fs.table.byID[n.id] == nil }()
	}, patience, time.Millisecond)
	require.Empty(t, d.fs.table.path(n))
	n.opened.mu.Unlock()
	<-forgotten
}
