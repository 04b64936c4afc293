package artifact

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"sync"

	"aimon.at/vfsd/change"
)

// Keys of log attributes.
const (
	keyError   = "error"
	keyPath    = "path"
	keySession = "session"
	keyID      = "id"
)

// maxComplaints bounds how many paths are remembered as complained about: a hostile tree must
// not fill the log or memory.
const maxComplaints = 1000

// Rules decides on the files of one tree. It is safe for concurrent use.
type Rules struct {
	tree Tree
	log  *slog.Logger

	mu         sync.Mutex // guards all below
	ignore     ignoreFile
	complained map[string]bool
}

// NewRules returns the rules of a tree.
func NewRules(tree Tree, log *slog.Logger) *Rules {
	return &Rules{tree: tree, log: log, ignore: ignoreFile{tree: tree, log: log}, complained: map[string]bool{}}
}

// Decide decides on the file at path. toolUse is what its tool use declares, nil for nothing;
// standard is the default of its execution.
func (r *Rules) Decide(path string, toolUse *bool, standard bool) Decision {
	return r.pass().decide(path, toolUse, standard)
}

// pass decides on many files while looking at each directory, each execution and .artifactignore
// once. It is used by one goroutine.
type pass struct {
	rules     *Rules
	ignored   ignored
	dirs      map[string]*bool // the attribute that holds below a directory
	standards map[string]bool  // the default by execution, as far as it was asked for
}

func (r *Rules) pass() *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &pass{rules: r, ignored: ignored{r.ignore.current(), map[string]bool{}}, dirs: map[string]*bool{}, standards: map[string]bool{}}
}

func (p *pass) decide(name string, toolUse *bool, standard bool) Decision {
	return decide(evidence{
		path:      name,
		own:       p.rules.attribute(name),
		toolUse:   toolUse,
		directory: p.directory(path.Dir(name)),
		ignored:   p.excludes,
		standard:  standard,
	})
}

func (p *pass) excludes(name string) bool {
	yes, all := p.ignored.excludes(name)
	if !all {
		p.rules.complain(ignoreFilePath, "the patterns are too much work: some are not applied")
	}
	return yes
}

// directory returns the attribute of the nearest directory from dir upwards that has one.
func (p *pass) directory(dir string) *bool {
	if v, known := p.dirs[dir]; known {
		return v
	}
	v := p.rules.attribute(dir)
	if v == nil && dir != "/" && dir != "." {
		v = p.directory(path.Dir(dir))
	}
	p.dirs[dir] = v
	return v
}

// attribute returns the intent set on a file or directory; nil where it is unset, not understood
// or cannot be read.
func (r *Rules) attribute(name string) *bool {
	raw, err := r.tree.Intent(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.complain(name, "cannot read user.aimon.artifact: taken as unset", keyError, err)
		}
		return nil
	}
	if raw == nil {
		return nil
	}
	value, ok := ParseIntent(raw)
	if !ok {
		r.complain(name, "user.aimon.artifact is neither true nor false: taken as unset", "value", string(raw[:min(len(raw), maxIntentLen)]))
		return nil
	}
	return &value
}

// complain logs once a path.
func (r *Rules) complain(name, message string, args ...any) {
	r.mu.Lock()
	known := r.complained[name] || len(r.complained) >= maxComplaints
	if !known {
		r.complained[name] = true
	}
	r.mu.Unlock()
	if !known {
		shown, _ := change.EscapePath(name)
		r.log.Warn(message, append([]any{keyPath, shown}, args...)...)
	}
}
