package artifact_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// reference says by plain lists of whole paths what the collector is to have.
type reference struct {
	entries []*refEntry
	known   map[uint64][]string // names of files with open entries, in order of becoming known
	seq     int
	wrote   map[uint64]int // how often a file was written
}

type refEntry struct {
	who     session.Attribution
	file    uint64
	names   []string // the last is shown
	moved   bool
	derived *refEntry
	seq     int // 0 while open
	wrote   int // how often its file was written until it became final
}

func (e *refEntry) shown() string { return e.names[len(e.names)-1] }

func (r *reference) open(file uint64) (of []*refEntry) {
	for _, e := range r.entries {
		if e.seq == 0 && e.file == file {
			of = append(of, e)
		}
	}
	return of
}

func (r *reference) find(file uint64, who session.Attribution) *refEntry {
	for _, e := range r.open(file) {
		if e.who.ToolUseID == who.ToolUseID && (who.ToolUseID != "" || e.who.Sureness == who.Sureness) {
			return e
		}
	}
	return nil
}

func (r *reference) begin(file uint64, who session.Attribution, moved bool) *refEntry {
	e := &refEntry{who: who, file: file, names: slices.Clone(r.known[file])}
	if moved {
		for _, f := range r.entries {
			if f.file == file && f.seq > 0 && (e.derived == nil || f.seq > e.derived.seq) {
				e.derived = f
			}
		}
	}
	r.entries = append(r.entries, e)
	return e
}

func (r *reference) learn(e *refEntry, name string, shown bool) {
	if !slices.Contains(r.known[e.file], name) {
		r.known[e.file] = append(r.known[e.file], name)
	}
	known := slices.Contains(e.names, name)
	switch {
	case shown:
		e.names = append(slices.DeleteFunc(e.names, func(n string) bool { return n == name }), name)
	case !known:
		e.names = slices.Insert(e.names, 0, name)
	}
}

func (r *reference) lose(name string) {
	r.entries = slices.DeleteFunc(r.entries, func(e *refEntry) bool {
		if e.seq > 0 || !slices.Contains(e.names, name) {
			return false
		}
		e.names = slices.DeleteFunc(e.names, func(n string) bool { return n == name })
		return len(e.names) == 0
	})
	for file, names := range r.known {
		r.known[file] = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
}

// forget drops the names of files that have no open entry any more; again lists them anew, as a
// restart does.
func (r *reference) forget(again bool) {
	for file := range r.known {
		if again || len(r.open(file)) == 0 {
			delete(r.known, file)
		}
	}
	for _, e := range r.entries {
		if again && e.seq == 0 {
			for _, n := range slices.Clone(e.names) {
				r.learn(e, n, true)
			}
		}
	}
}

// names are all lists of names that follow a directory.
func (r *reference) names() (lists [][]string) {
	for _, names := range r.known {
		lists = append(lists, names)
	}
	for _, e := range r.entries {
		if e.seq == 0 {
			lists = append(lists, e.names)
		}
	}
	return lists
}

func (r *reference) write(file uint64, p string, who session.Attribution) {
	r.wrote[file]++
	e := r.find(file, who)
	if e == nil {
		e = r.begin(file, who, false)
	}
	e.who.Late = e.who.Late || who.Late
	for _, o := range r.open(file) {
		r.learn(o, p, o == e)
	}
}

func (r *reference) link(file uint64, p string, who session.Attribution) {
	if len(r.open(file)) == 0 {
		r.begin(file, who, true)
	}
	for _, e := range r.open(file) {
		r.learn(e, p, e.who.ToolUseID == who.ToolUseID && e.who.Sureness == who.Sureness || len(e.names) == 0)
	}
}

func (r *reference) rename(file uint64, from, to string, who session.Attribution) {
	r.lose(to)
	fresh := len(r.open(file)) == 0
	if fresh {
		r.begin(file, who, true)
	}
	for _, e := range r.open(file) {
		own := e.who.ToolUseID == who.ToolUseID && e.who.Sureness == who.Sureness
		if slices.Contains(e.names, from) {
			own = e.shown() == from
		}
		r.learn(e, to, own || len(e.names) == 0)
	}
	r.lose(from)
}

// record is a final entry of a path, the latest one, and whether its file is there.
type record struct {
	*refEntry
	there bool
}

// records are in order. at says which file the model's tree has at a path.
func (r *reference) records(at func(string) uint64) []record {
	latest := map[string]*refEntry{}
	for _, e := range r.entries {
		if e.seq > 0 && (latest[e.shown()] == nil || latest[e.shown()].seq < e.seq) {
			latest[e.shown()] = e
		}
	}
	found := []record{}
	for p, e := range latest {
		found = append(found, record{e, at(p) == e.file})
	}
	slices.SortFunc(found, func(a, b record) int { return a.seq - b.seq })
	return found
}

// carry makes the entries of whoever renamed a directory, at the old names, which the rename then
// moves: of files without an open entry that are below and have the content of their last record below.
func (r *reference) carry(dir string, who session.Attribution, records []record) {
	of := map[uint64][]record{}
	for _, f := range records {
		if strings.HasPrefix(f.shown(), dir+"/") {
			of[f.file] = append(of[f.file], f)
		}
	}
	for _, last := range records {
		below := of[last.file]
		if len(below) == 0 || below[len(below)-1] != last || len(r.open(last.file)) > 0 || r.wrote[last.file] != last.wrote ||
			!slices.ContainsFunc(below, func(f record) bool { return f.there }) {
			continue
		}
		e := r.begin(last.file, who, false)
		e.derived = last.refEntry
		for _, f := range below {
			if f.there {
				r.learn(e, f.shown(), true)
			}
		}
	}
}

func (r *reference) renameDir(from, to string) {
	for _, names := range r.names() {
		for i, n := range names {
			if rest, below := strings.CutPrefix(n, from+"/"); below {
				names[i] = to + "/" + rest
			}
		}
	}
}

func (r *reference) swap(a, b string) {
	for _, names := range r.names() {
		for i, n := range names {
			for _, s := range [][2]string{{a, b}, {b, a}} {
				if rest, at := strings.CutPrefix(n, s[0]); at && (rest == "" || rest[0] == '/') {
					names[i] = s[1] + rest
					break
				}
			}
		}
	}
}

func (r *reference) finish(match func(*refEntry) bool) {
	for _, e := range r.entries {
		if e.seq == 0 && len(e.names) > 0 && match(e) {
			r.seq++
			e.seq, e.wrote = r.seq, r.wrote[e.file]
		}
	}
	r.forget(false)
}

func (r *reference) lines() (final, open []string) {
	final, open = []string{}, []string{}
	for _, e := range r.entries {
		if len(e.names) == 0 {
			continue
		}
		line := fmt.Sprintf("%d %s %s late=%v", e.file, e.shown(), e.who.ToolUseID, e.who.Late)
		if e.derived != nil {
			line += fmt.Sprintf(" from=%d", e.derived.seq)
		}
		if e.seq > 0 {
			final = append(final, fmt.Sprintf("%06d %s", e.seq, line))
		} else {
			open = append(open, line)
		}
	}
	slices.Sort(final)
	slices.Sort(open)
	return final, open
}

// machine runs random operations on the tree and tells the reference.
type machine struct {
	*bench
	ref       reference
	open      map[string]bool // tool uses; C is in the fork f1
	forkEnded bool
}

var (
	modelDirs  = []string{"/d", "/e", "/d/s"}
	modelFiles = []string{"/a", "/b", "/d/a", "/d/b", "/e/a", "/d/s/a"}
)

func (m *machine) who(t *rapid.T) session.Attribution {
	id := rapid.SampledFrom([]string{"A", "B", "C", ""}).Draw(t, "who")
	if id == "" {
		return byNobody()
	}
	who := by(id)
	who.Late = !m.open[id]
	if id == "C" {
		who.ExecutionID = "f1"
		who.Late = who.Late || m.forkEnded
	}
	return who
}

func (m *machine) file(p string) uint64 {
	id, _, err := m.tree.Stat(p)
	if err != nil {
		return 0
	}
	return id.Ino
}

func (m *machine) isDir(p string) bool {
	for _, f := range m.tree.Files() {
		if strings.HasPrefix(f, p+"/") {
			return true
		}
	}
	return false
}

func (m *machine) actions() map[string]func(*rapid.T) {
	path := rapid.SampledFrom(modelFiles)
	dir := rapid.SampledFrom(modelDirs)
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			p, who := path.Draw(t, "path"), m.who(t)
			m.tree.Write(p, "x", who)
			m.ref.write(m.file(p), p, who)
		},
		"nameless": func(t *rapid.T) {
			p, who := path.Draw(t, "path"), m.who(t)
			if m.file(p) != 0 {
				t.Skip("the name is taken")
			}
			m.tree.Nameless("x", who)(p, who)
			m.ref.write(m.file(p), p, who)
		},
		"rename": func(t *rapid.T) {
			from, to, who := path.Draw(t, "from"), path.Draw(t, "to"), m.who(t)
			file := m.file(from)
			if file == 0 || file == m.file(to) {
				t.Skip("nothing to rename")
			}
			m.tree.Rename(from, to, who)
			m.ref.rename(file, from, to, who)
		},
		"link": func(t *rapid.T) {
			old, p, who := path.Draw(t, "old"), path.Draw(t, "path"), m.who(t)
			if !m.tree.Link(old, p, who) {
				t.Skip("nothing to link")
			}
			m.ref.link(m.file(p), p, who)
		},
		"unlink": func(t *rapid.T) {
			p := path.Draw(t, "path")
			m.tree.Unlink(p)
			m.ref.lose(p)
			m.ref.forget(false)
		},
		"rename directory": func(t *rapid.T) {
			from, to := dir.Draw(t, "from"), dir.Draw(t, "to")
			if !m.isDir(from) || m.isDir(to) || strings.HasPrefix(to+"/", from+"/") || m.file(to) != 0 {
				t.Skip("nothing to rename")
			}
			who, live := m.who(t), m.ref.records(m.file)
			m.tree.RenameDir(from, to, who)
			m.ref.carry(from, who, live)
			m.ref.renameDir(from, to)
		},
		"exchange directories": func(t *rapid.T) {
			from, to := dir.Draw(t, "from"), dir.Draw(t, "to")
			if !m.isDir(from) || !m.isDir(to) || strings.HasPrefix(to+"/", from+"/") || strings.HasPrefix(from+"/", to+"/") {
				t.Skip("nothing to exchange")
			}
			who, live := m.who(t), m.ref.records(m.file)
			m.tree.Exchange(from, to, who)
			m.ref.carry(from, who, live)
			m.ref.carry(to, who, live)
			m.ref.swap(from, to)
		},
		"exchange files": func(t *rapid.T) {
			from, to, who := path.Draw(t, "from"), path.Draw(t, "to"), m.who(t)
			a, b := m.file(from), m.file(to)
			if a == 0 || b == 0 || a == b {
				t.Skip("nothing to exchange")
			}
			m.tree.Exchange(from, to, who)
			for _, f := range []struct {
				file uint64
				name string
			}{{a, from}, {b, to}} {
				if len(m.ref.open(f.file)) == 0 {
					m.ref.learn(m.ref.begin(f.file, who, true), f.name, true)
				}
			}
			m.ref.swap(from, to)
		},
		"exchange a file and a directory": func(t *rapid.T) {
			from, to, who := path.Draw(t, "from"), dir.Draw(t, "to"), m.who(t)
			a := m.file(from)
			if a == 0 || !m.isDir(to) || strings.HasPrefix(from, to+"/") {
				t.Skip("nothing to exchange")
			}
			live := m.ref.records(m.file)
			m.tree.Exchange(from, to, who)
			if len(m.ref.open(a)) == 0 {
				m.ref.learn(m.ref.begin(a, who, true), from, true)
			}
			m.ref.carry(to, who, live)
			m.ref.swap(from, to)
			require.NoError(t, m.recorder.Flush(context.Background()))
			// Back again: the names of the other actions are files here and directories there.
			live = m.ref.records(m.file)
			m.tree.Exchange(to, from, who)
			m.ref.carry(from, who, live)
			m.ref.swap(to, from)
		},
		"end": func(t *rapid.T) {
			id := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "tool use")
			if !m.open[id] {
				t.Skip("it has ended")
			}
			m.open[id] = false
			m.end(id)
			m.ref.finish(func(e *refEntry) bool { return e.who.ToolUseID == id })
		},
		"end of the fork": func(t *rapid.T) {
			if m.forkEnded {
				t.Skip("it has ended")
			}
			m.forkEnded = true
			require.NoError(t, m.recorder.FinishExecution(context.Background(), m.sessions.End("f1")))
			m.ref.finish(func(e *refEntry) bool { return e.who.ExecutionID == "f1" })
		},
		"mark": func(t *rapid.T) {
			mark := m.mark()
			m.ref.finish(func(e *refEntry) bool { return !m.open[e.who.ToolUseID] })
			require.Equal(t, uint64(m.ref.seq), mark)
		},
		"restart": func(t *rapid.T) {
			m.restart()
			m.ref.forget(true)
			m.ref.finish(func(e *refEntry) bool { return e.who.ToolUseID != "" && !m.open[e.who.ToolUseID] })
		},
		"": m.check,
	}
}

func (m *machine) check(t *rapid.T) {
	final, open := []string{}, []string{}
	bySeq := map[string]uint64{}
	for _, v := range m.list(artifact.ListQuery{Writes: true}) {
		require.Equal(t, "s1", v.SessionID)
		line := fmt.Sprintf("%d %s %s late=%v", v.File.Ino, v.Path(), v.Who.ToolUseID, v.Who.Late)
		if v.DerivedFrom != "" {
			line += fmt.Sprintf(" from=%d", bySeq[v.DerivedFrom])
		}
		if v.Final {
			bySeq[v.ID] = v.Seq
			final = append(final, fmt.Sprintf("%06d %s", v.Seq, line))
			continue
		}
		open = append(open, line)
		require.NotEqual(t, artifact.Deleted, v.State, "an open entry has a file")
		require.NotEqual(t, artifact.Replaced, v.State, "it is its own")
	}
	slices.Sort(open)
	wantFinal, wantOpen := m.ref.lines()
	require.Equal(t, wantFinal, final)
	require.Equal(t, wantOpen, open)

	rows, err := m.store.OpenEntries(context.Background(), "s1")
	require.NoError(t, err)
	require.Len(t, rows, len(open), "the index has what memory has")
	stored := []string{}
	for _, e := range rows {
		stored = append(stored, e.Path())
	}
	shown := []string{}
	for _, e := range m.ref.entries {
		if e.seq == 0 && len(e.names) > 0 {
			shown = append(shown, e.shown())
		}
	}
	require.ElementsMatch(t, shown, stored)
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{bench: newBench(t), open: map[string]bool{"A": true, "B": true, "C": true}}
		m.ref.known, m.ref.wrote = map[uint64][]string{}, map[uint64]int{}
		m.sessions.Begin("f1", "e1", true)
		m.sessions.BeginTool("C", "f1")
		t.Repeat(m.actions())
	})
}
