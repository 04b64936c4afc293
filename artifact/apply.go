package artifact

import (
	"cmp"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// nowhere is a path that no file can have, for the middle step of an exchange of directories.
const nowhere = "/\x00exchange"

// apply carries out one event on the open entries. Recorder.mu is held.
func (r *Recorder) apply(e change.Event) {
	switch e.Kind {
	case change.Write:
		r.applyWrite(e)
	case change.Rename:
		r.applyRename(e)
	case change.RenameDir:
		r.applyRenameDir(e)
	case change.Exchange:
		r.applyExchange(e)
	case change.Link:
		r.applyLink(e)
	case change.Unlink:
		r.applyUnlink(e)
	case change.Intent:
		if !e.Directory {
			r.amend(e.File)
		}
	case change.Touch:
		r.touch(e.File, e.Before, e.Stamp)
	}
}

func (r *Recorder) applyWrite(e change.Event) {
	f := r.open.files[e.File]
	entry := f.find(keyOf(e.Who))
	if entry == nil {
		if r.finals.same(e) {
			return // the release of what was looked at when it became final
		}
		entry = r.begin(e, false)
	}
	entry.Stamp = e.Stamp
	entry.Who = merge(entry.Who, e.Who)
	if e.Path != "" {
		r.open.claim(e.Path, entry.file, func(o *openEntry) bool { return o == entry })
	} else if len(entry.names) == 0 {
		r.keepNameless(entry.file)
	}
	r.changed(entry)
}

// merge gives the attribution of two writes of one entry: the first one's, with all that could have
// been it, and what was declared last.
func merge(first, next session.Attribution) session.Attribution {
	for _, id := range next.Candidates {
		if !slices.Contains(first.Candidates, id) {
			first.Candidates = append(slices.Clip(first.Candidates), id) // a copy: the slice is shared
		}
	}
	first.Late = first.Late || next.Late
	first.DeclaredToolUseID = cmp.Or(first.DeclaredToolUseID, next.DeclaredToolUseID)
	if next.Artifact != nil {
		first.Artifact = next.Artifact
	}
	return first
}

// begin makes an entry. moved says that a rename or link and not a write made it.
func (r *Recorder) begin(e change.Event, moved bool) *openEntry {
	entry := r.open.add(newOpen(r.sessionID, e))
	if entry.CreatedAt.IsZero() {
		entry.CreatedAt = r.now()
	}
	entry.moved = moved
	if r.endedTools[e.Who.ToolUseID] || r.endedExecutions[e.Who.ExecutionID] {
		entry.Who.Late = true
	}
	return entry
}

// newOpen is the entry that an event makes.
func newOpen(sessionID string, e change.Event) Entry {
	return Entry{
		ID: ulid.Make().String(), SessionID: sessionID, Who: e.Who,
		File: e.File, Stamp: e.Stamp, CreatedAt: e.At,
	}
}

func (r *Recorder) applyRename(e change.Event) {
	if e.Replaced == e.File {
		return // two names of one inode: rename(2) does nothing
	}
	f := r.open.files[e.File]
	if n := r.open.names.find(e.Path); n == nil || n.file == nil || n.file != f {
		r.open.losePath(e.Path)
	}
	if f == nil {
		f = r.begin(e, true).file
	}
	r.open.claim(e.Path, f, r.showing(f, e.From, e))
	if n := r.open.names.find(e.From); n != nil && n.file != nil {
		r.open.lose(n)
	}
	r.allChanged(f)
}

// showing says which entries of f show the new name of a file that loses from: those that showed
// from, and those of whoever gave the name where from was not known.
func (r *Recorder) showing(f *openFile, from string, e change.Event) func(*openEntry) bool {
	n := r.open.names.find(from)
	key := keyOf(e.Who)
	return func(o *openEntry) bool {
		if n == nil || n.file != f {
			return o.key == key || len(o.names) == 0
		}
		return len(o.names) > 0 && o.names[len(o.names)-1] == n
	}
}

func (r *Recorder) applyLink(e change.Event) {
	f := r.open.files[e.File]
	if f == nil {
		f = r.begin(e, true).file
	}
	key := keyOf(e.Who)
	r.open.claim(e.Path, f, func(o *openEntry) bool { return o.key == key || len(o.names) == 0 })
	r.allChanged(f)
}

func (r *Recorder) applyUnlink(e change.Event) {
	if e.Last {
		if f := r.open.files[e.File]; f != nil {
			for _, n := range slices.Clone(f.names) {
				r.open.lose(n)
			}
		}
	}
	if n := r.open.names.find(e.Path); n != nil && n.file != nil {
		r.open.lose(n)
	}
}

func (r *Recorder) applyRenameDir(e change.Event) {
	if e.From == e.Path || strings.HasPrefix(e.Path, e.From+"/") {
		return
	}
	r.carryLater(e, e.From, e.Path)
	r.moveDir(e.From, e.Path)
}

// moveDir moves all names below from, in memory and in the index.
func (r *Recorder) moveDir(from, to string) {
	n := r.open.names.detach(from)
	if n == nil {
		return
	}
	r.open.losePath(to)
	r.open.names.attach(n, to)
	n.each(func(m *nameNode) { r.bump(m.file) })
	if len(n.children) > 0 {
		r.renamed(RenameDir{SessionID: r.sessionID, From: from, To: to})
	}
}

// bump tells a look at the file that is under way that its names changed; the row follows by the
// RenameDir.
func (r *Recorder) bump(f *openFile) {
	for _, e := range f.entries {
		e.gen++
	}
}

func (r *Recorder) applyExchange(e change.Event) {
	if e.From == e.Path {
		return
	}
	files := []change.FileID{}
	if !e.Directory {
		files = append(files, e.File)
		r.bring(e, e.File, e.From)
	}
	if !e.ReplacedDirectory {
		files = append(files, e.Replaced)
		r.bring(e, e.Replaced, e.Path)
	}
	for _, step := range [][2]string{{e.From, nowhere}, {e.Path, e.From}, {nowhere, e.Path}} {
		if e.Directory || e.ReplacedDirectory {
			r.carryLater(e, step[0], step[1])
		}
		r.moveDir(step[0], step[1])
	}
	for _, id := range files {
		r.allChanged(r.open.files[id])
	}
}

// bring makes the entry of an unrecorded file that an exchange brings to another name, at the name
// it had so far: the exchange moves it.
func (r *Recorder) bring(e change.Event, id change.FileID, at string) {
	if r.open.files[id] != nil || id == (change.FileID{}) {
		return
	}
	if id != e.File {
		e.Stamp = change.Stamp{}
	}
	e.File = id
	entry := r.begin(e, true)
	r.open.claim(at, entry.file, func(*openEntry) bool { return true })
	r.changed(entry)
}

func (r *Recorder) allChanged(f *openFile) {
	if f == nil {
		return
	}
	for _, e := range f.entries {
		r.changed(e)
	}
}
