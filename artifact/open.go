package artifact

import (
	"slices"
	"time"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// maxNames bounds the known names of one file: they are written with every change of an entry, and
// a file system allows tens of thousands of hard links.
const maxNames = 100

// openFile is an inode that has open entries, with the names it is known by.
type openFile struct {
	id      change.FileID
	names   []*nameNode
	entries []*openEntry
}

// entryKey is what makes two writes one entry. Without a tool use the sureness keeps what is
// ambiguous apart from what is nobody's.
type entryKey struct {
	execution string
	toolUse   string
	sureness  session.Sureness // for toolUse "" only
}

func keyOf(who session.Attribution) entryKey {
	k := entryKey{execution: who.ExecutionID, toolUse: who.ToolUseID}
	if k.toolUse == "" {
		k.sureness = who.Sureness
	}
	return k
}

// openEntry is an Entry that is not final. Its names are nodes of the tree; the Entry's own Names
// are filled in when it is shown.
type openEntry struct {
	Entry
	key   entryKey // like ID never changed: both may be read without the lock
	file  *openFile
	names []*nameNode // known names; the last is the one shown

	changed time.Time // when an event touched it last
	born    uint64    // its place in the order in which entries were made
	gen     uint64    // counts changes, to see one happen beside a look at the file
	stored  bool      // has a row
	moved   bool      // came to be by a rename or link: DerivedFrom is to be looked up
}

// snapshot returns the entry with its paths as they are now.
func (e *openEntry) snapshot() Entry {
	s := e.Entry
	s.Names = make([]string, len(e.names))
	for i, n := range e.names {
		s.Names[i] = n.path()
	}
	return s
}

// learn makes n a known name: the one shown, or the least of them.
func (e *openEntry) learn(n *nameNode, shown bool) {
	i := slices.Index(e.names, n)
	switch {
	case i < 0 && shown:
		e.names = append(e.names, n)
	case i < 0:
		e.names = slices.Insert(e.names, 0, n)
	case shown:
		e.names = append(slices.Delete(e.names, i, i+1), n)
	}
}

// openSet is the open entries of a session and their names. It knows nothing of rows and disks:
// it says what changed through its hooks. Guarded by Recorder.mu.
type openSet struct {
	files   map[change.FileID]*openFile
	entries map[string]*openEntry // by id
	names   *nameTree
	born    uint64 // how many entries were made

	changed func(*openEntry) // an entry differs from what it was
	dropped func(*openEntry) // an entry is no more
}

func newOpenSet(changed, dropped func(*openEntry)) openSet {
	return openSet{files: map[change.FileID]*openFile{}, entries: map[string]*openEntry{},
		names: newNameTree(), changed: changed, dropped: dropped}
}

// find returns the file's entry of that key, nil for none.
func (f *openFile) find(k entryKey) *openEntry {
	if f == nil {
		return nil
	}
	for _, e := range f.entries {
		if e.key == k {
			return e
		}
	}
	return nil
}

// add inserts an entry of a file. It knows the names that its file is known by.
func (s *openSet) add(e Entry) *openEntry {
	f := s.files[e.File]
	if f == nil {
		f = &openFile{id: e.File}
		s.files[e.File] = f
	}
	s.born++
	o := &openEntry{Entry: e, key: keyOf(e.Who), file: f, names: slices.Clone(f.names), born: s.born}
	o.Names = nil
	f.entries = append(f.entries, o)
	s.entries[o.ID] = o
	return o
}

// remove forgets an entry and, with the last one of a file, the file.
func (s *openSet) remove(e *openEntry) {
	delete(s.entries, e.ID)
	f := e.file
	f.entries = slices.DeleteFunc(f.entries, func(o *openEntry) bool { return o == e })
	if len(f.entries) > 0 {
		return
	}
	for _, n := range f.names {
		n.file = nil
		n.prune()
	}
	f.names = nil
	delete(s.files, f.id)
}

// claim makes path a name of f. Another file that was thought to have it has lost it: its unlink
// happened behind the mount. The name is shown by the entries that shown says.
func (s *openSet) claim(path string, f *openFile, shown func(*openEntry) bool) {
	n := s.names.ensure(path)
	if n.file != nil && n.file != f {
		s.lose(n)
		n = s.names.ensure(path) // losing may have pruned it
	}
	n.file = f
	if !slices.Contains(f.names, n) {
		f.names = append(f.names, n)
	}
	for _, e := range f.entries {
		e.learn(n, shown(e))
	}
	if len(f.names) > maxNames {
		s.forgetName(f)
	}
}

// forgetName drops the oldest known name of a file that no entry shows.
func (s *openSet) forgetName(f *openFile) {
	shows := func(e *openEntry, n *nameNode) bool { return len(e.names) > 0 && e.names[len(e.names)-1] == n }
	for _, n := range f.names {
		if !slices.ContainsFunc(f.entries, func(e *openEntry) bool { return shows(e, n) }) {
			s.lose(n)
			return
		}
	}
}

// lose takes a name from its file. An entry without a name left is dropped.
func (s *openSet) lose(n *nameNode) {
	f := n.file
	n.file = nil
	f.names = slices.DeleteFunc(f.names, func(m *nameNode) bool { return m == n })
	n.prune()
	for _, e := range slices.Clone(f.entries) {
		i := slices.Index(e.names, n)
		if i < 0 {
			continue
		}
		e.names = slices.Delete(e.names, i, i+1)
		if len(e.names) > 0 {
			s.changed(e)
			continue
		}
		s.dropped(e)
		s.remove(e)
	}
}

// losePath takes the name at path, and every name below it, from whoever has them.
func (s *openSet) losePath(path string) {
	n := s.names.find(path)
	if n == nil {
		return
	}
	var gone []*nameNode
	n.each(func(m *nameNode) { gone = append(gone, m) })
	for _, m := range gone {
		s.lose(m)
	}
}
