package artifacttest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

var (
	_ artifact.Tree    = (*Tree)(nil)
	_ artifact.Handles = (*Tree)(nil)
)

// Tree is a working tree in memory that reports what happens to it as a mount does. Directories
// come to be with their files. It is an artifact.Tree, and artifact.Handles without open handles.
type Tree struct {
	mu     sync.Mutex // guards all below
	record func(change.Event)
	names  map[string]*inode
	dirs   map[string][]byte // attribute of directories that have one
	clock  int64
	inodes uint64
	broken error
}

type inode struct {
	id       change.FileID
	stamp    change.Stamp
	before   change.Stamp // what it was before an exchange
	content  []byte
	intent   []byte
	writable bool
}

// NewTree returns an empty tree.
func NewTree() *Tree {
	return &Tree{names: map[string]*inode{}, dirs: map[string][]byte{}, record: func(change.Event) {}}
}

// Report has events sent to record from here on; nil for none.
func (t *Tree) Report(record func(change.Event)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if record == nil {
		record = func(change.Event) {}
	}
	t.record = record
}

// Break makes Open and Stat fail with err; nil mends them.
func (t *Tree) Break(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

// tick returns a time later than every one before.
func (t *Tree) tick() int64 {
	t.clock = max(t.clock+1, time.Now().UnixNano())
	return t.clock
}

func (t *Tree) make(content string) *inode {
	t.inodes++
	now := t.tick()
	return &inode{id: change.FileID{Dev: 1, Ino: t.inodes, Birth: now}, content: []byte(content),
		stamp: change.Stamp{Size: int64(len(content)), Mtime: now, Ctime: now}}
}

func (t *Tree) send(e change.Event) {
	e.At = time.Unix(0, t.clock).UTC()
	t.record(e)
}

// Write creates or rewrites the file at p.
func (t *Tree) Write(p, content string, who session.Attribution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[p]
	if n == nil {
		n = t.make(content)
		t.names[p] = n
	} else {
		t.rewrite(n, content)
	}
	t.send(change.Event{Kind: change.Write, File: n.id, Path: p, Stamp: n.stamp, Who: who})
}

func (t *Tree) rewrite(n *inode, content string) {
	now := t.tick()
	n.content = []byte(content)
	n.stamp = change.Stamp{Size: int64(len(content)), Mtime: now, Ctime: now}
}

// Nameless makes a file as O_TMPFILE does; link gives it a name.
func (t *Tree) Nameless(content string, who session.Attribution) (link func(p string, who session.Attribution)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.make(content)
	t.send(change.Event{Kind: change.Write, File: n.id, Stamp: n.stamp, Who: who})
	return func(p string, who session.Attribution) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.names[p] = n
		n.stamp.Ctime = t.tick()
		t.send(change.Event{Kind: change.Link, File: n.id, Path: p, Stamp: n.stamp, Who: who})
	}
}

// touch moves the ctime and reports it.
func (t *Tree) touch(n *inode) {
	before := n.stamp
	n.stamp.Ctime = t.tick()
	t.send(change.Event{Kind: change.Touch, File: n.id, Before: before, Stamp: n.stamp})
}

// Rename renames a file. It reports false where there is none.
func (t *Tree) Rename(from, to string, who session.Attribution) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, over := t.names[from], t.names[to]
	if n == nil || n == over {
		return n != nil
	}
	e := change.Event{Kind: change.Rename, File: n.id, From: from, Path: to, Who: who}
	if over != nil {
		e.Replaced = over.id
	}
	delete(t.names, from)
	t.names[to] = n
	e.Before = n.stamp
	n.stamp.Ctime = t.tick()
	e.Stamp = n.stamp
	t.send(e)
	t.send(change.Event{Kind: change.Touch, File: n.id, Before: e.Before, Stamp: n.stamp})
	if over != nil && len(t.linksOf(over)) > 0 {
		t.touch(over)
	}
	return true
}

// RenameDir renames a directory to a name that nothing has.
func (t *Tree) RenameDir(from, to string, who session.Attribution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.move(from, to)
	t.tick()
	t.send(change.Event{Kind: change.RenameDir, From: from, Path: to, Directory: true, Who: who})
}

func (t *Tree) move(from, to string) {
	moved := map[string]*inode{}
	for p, n := range t.names {
		if rest, at := strings.CutPrefix(p, from); at && (rest == "" || rest[0] == '/') {
			delete(t.names, p)
			moved[to+rest] = n
		}
	}
	maps.Copy(t.names, moved)
}

// Exchange exchanges two files, two directories, or one of each.
func (t *Tree) Exchange(from, to string, who session.Attribution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, b := t.names[from], t.names[to]
	e := change.Event{Kind: change.Exchange, From: from, Path: to, Directory: a == nil, ReplacedDirectory: b == nil, Who: who}
	t.tick()
	t.move(from, "\x00")
	t.move(to, from)
	t.move("\x00", to)
	for _, n := range []*inode{a, b} {
		if n != nil {
			n.before, n.stamp.Ctime = n.stamp, t.tick()
		}
	}
	if a != nil {
		e.File, e.Before, e.Stamp = a.id, a.before, a.stamp
	}
	if b != nil {
		e.Replaced = b.id
	}
	t.send(e)
	for _, n := range []*inode{a, b} {
		if n != nil {
			t.send(change.Event{Kind: change.Touch, File: n.id, Before: n.before, Stamp: n.stamp})
		}
	}
}

// Link makes a hard link. It reports false where it cannot.
func (t *Tree) Link(old, p string, who session.Attribution) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[old]
	if n == nil || t.names[p] != nil {
		return false
	}
	t.names[p] = n
	before := n.stamp
	n.stamp.Ctime = t.tick()
	t.send(change.Event{Kind: change.Link, File: n.id, From: old, Path: p, Before: before, Stamp: n.stamp, Who: who})
	t.send(change.Event{Kind: change.Touch, File: n.id, Before: before, Stamp: n.stamp})
	return true
}

// Unlink removes a name.
func (t *Tree) Unlink(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[p]
	if n == nil {
		return
	}
	delete(t.names, p)
	last := len(t.linksOf(n)) == 0
	t.send(change.Event{Kind: change.Unlink, File: n.id, Path: p, Last: last, Stamp: n.stamp})
	if !last {
		t.touch(n)
	}
}

func (t *Tree) linksOf(n *inode) []string {
	var links []string
	for p, m := range t.names {
		if m == n {
			links = append(links, p)
		}
	}
	return links
}

// Chmod changes attributes and no content.
func (t *Tree) Chmod(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touch(t.names[p])
}

// Utimes sets the time of modification.
func (t *Tree) Utimes(p string, mtime int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[p]
	before := n.stamp
	n.stamp.Mtime, n.stamp.Ctime = mtime, t.tick()
	t.send(change.Event{Kind: change.Touch, File: n.id, Before: before, Stamp: n.stamp})
}

// SetWritable says whether anybody holds the file open for writing.
func (t *Tree) SetWritable(p string, writable bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[p].writable = writable
}

// Behind changes the tree without a report, as somebody does who writes to the directory itself.
func (t *Tree) Behind(f func()) {
	t.mu.Lock()
	record := t.record
	t.record = func(change.Event) {}
	t.mu.Unlock()
	f()
	t.mu.Lock()
	t.record = record
	t.mu.Unlock()
}

// Files returns the paths of all files.
func (t *Tree) Files() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for p := range t.names {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// SetIntent sets the attribute of a file or directory and reports it.
func (t *Tree) SetIntent(p string, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	value = slices.Clone(value)
	if n := t.names[p]; n != nil {
		n.intent = value
		t.send(change.Event{Kind: change.Intent, File: n.id, Path: p})
		t.touch(n)
		return nil
	}
	t.dirs[p] = value
	t.send(change.Event{Kind: change.Intent, Path: p, Directory: true})
	return nil
}

// Intent returns the attribute of a file or directory.
func (t *Tree) Intent(p string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.names[p]; n != nil {
		return n.intent, nil
	}
	return t.dirs[p], nil
}

func (t *Tree) find(p string) (*inode, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	if n := t.names[p]; n != nil {
		return n, nil
	}
	for q := range t.names {
		if strings.HasPrefix(q, p+"/") {
			return nil, fmt.Errorf("%s is a directory: %w", p, fs.ErrInvalid)
		}
	}
	return nil, fmt.Errorf("%s: %w", p, fs.ErrNotExist)
}

// Stat returns what the file at p is like.
func (t *Tree) Stat(p string) (change.FileID, change.Stamp, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find(p)
	if err != nil {
		return change.FileID{}, change.Stamp{}, err
	}
	return n.id, n.stamp, nil
}

// Open opens the file at p.
func (t *Tree) Open(p string) (artifact.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find(p)
	if err != nil {
		return nil, err
	}
	return &file{t, n}, nil
}

// ReadRoot reads a file of the root.
func (t *Tree) ReadRoot(name string, limit int64) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find(path.Join("/", name))
	if err != nil {
		return nil, err
	}
	if int64(len(n.content)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return slices.Clone(n.content), nil
}

// Settle has nothing to wait for.
func (t *Tree) Settle(context.Context, string, time.Duration) {}

// Forget does nothing.
func (t *Tree) Forget(change.FileID) {}

type file struct {
	tree  *Tree
	inode *inode
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return bytes.NewReader(f.inode.content).ReadAt(p, off)
}

func (f *file) Stat() (change.FileID, change.Stamp, error) {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.inode.id, f.inode.stamp, nil
}

func (f *file) Writable() bool {
	f.tree.mu.Lock()
	defer f.tree.mu.Unlock()
	return f.inode.writable
}

func (f *file) Close() error { return nil }
