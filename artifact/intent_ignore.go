package artifact

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"aimon.at/vfsd/change"
)

const (
	ignoreFileName = ".artifactignore"
	ignoreFilePath = "/" + ignoreFileName
	maxIgnoreSize  = 64 << 10
	// maxIgnorePatterns bounds the cost of a decision: the file is written by the agent, and 64 KiB
	// hold 32,000 patterns that each entry would be matched against.
	maxIgnorePatterns = 2000
)

// ignoreFile is the .artifactignore of a tree, parsed again only when the file changed. It is used
// by one goroutine at a time (Rules.mu).
type ignoreFile struct {
	tree  Tree
	log   *slog.Logger
	id    change.FileID
	stamp change.Stamp
	rules []ignoreRule
}

// current returns the rules as the file stands. Where it cannot be read there are none, with a
// line in the log once a version of the file.
func (f *ignoreFile) current() []ignoreRule {
	id, stamp, err := f.tree.Stat(ignoreFilePath)
	if err != nil {
		f.id, f.stamp, f.rules = change.FileID{}, change.Stamp{}, nil
		if !errors.Is(err, fs.ErrNotExist) {
			f.log.Debug("cannot look at .artifactignore", keyError, err)
		}
		return nil
	}
	if id == f.id && stamp == f.stamp {
		return f.rules
	}
	f.id, f.stamp, f.rules = id, stamp, nil
	text, err := f.tree.ReadRoot(ignoreFileName, maxIgnoreSize)
	if err != nil {
		f.log.Warn("cannot read .artifactignore: it is not applied", keyError, err)
		return nil
	}
	var all bool
	if f.rules, all = parseIgnore(string(text)); !all {
		f.log.Warn(".artifactignore is too long: patterns beyond the limit are not applied", "limit", maxIgnorePatterns)
	}
	return f.rules
}

// ignoreRule is one line.
type ignoreRule struct {
	pattern gitignore.Pattern
	whole   bool // matches the path from the root; else the last element alone
	below   bool // ends in /**: matches at any depth below
	cost    int  // bytes of the line
	stars   int  // 1 where there is a star, which tries every place in a name; else 0
}

// parseIgnore reads gitignore syntax; all is false where there were more patterns than are kept.
func parseIgnore(text string) (rules []ignoreRule, all bool) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' || strings.Trim(line, " /!") == "" {
			continue
		}
		if len(rules) == maxIgnorePatterns {
			return rules, false
		}
		rules = append(rules, ignoreRule{
			pattern: gitignore.ParsePattern(line, nil),
			whole:   strings.Contains(strings.TrimSuffix(strings.TrimRight(line, " "), "/"), "/"),
			below:   strings.HasSuffix(line, "/**"),
			cost:    len(line),
			stars:   min(1, strings.Count(line, "*")),
		})
	}
	return rules, true
}

// maxIgnoreWork bounds what one decision costs, in bytes of patterns times bytes of names: some
// milliseconds. Patterns that it does not reach are not applied.
const maxIgnoreWork = 4 << 20

// ignored matches many files of one tree by git's rule: the last pattern that matches decides, and below
// an excluded directory nothing can be included again. Each directory is matched once.
type ignored struct {
	rules []ignoreRule
	dirs  map[string]bool // whether a directory is excluded
}

// excludes reports whether the file at path is excluded; all is false where that was too much work to
// tell.
func (g *ignored) excludes(path string) (yes, all bool) {
	if len(g.rules) == 0 {
		return false, true
	}
	elements := strings.Split(strings.TrimPrefix(path, "/"), "/")
	work := maxIgnoreWork
	end := 0 // of the directory in path
	for n := 1; n < len(elements); n++ {
		end += 1 + len(elements[n-1])
		dir := path[:end]
		yes, known := g.dirs[dir]
		if !known {
			yes = lastMatch(g.rules, elements[:n], true, &work) == gitignore.Exclude
			g.dirs[dir] = yes
		}
		if yes {
			return true, true
		}
	}
	yes = lastMatch(g.rules, elements, false, &work) == gitignore.Exclude
	return yes, work > 0
}

func lastMatch(rules []ignoreRule, elements []string, isDir bool, work *int) gitignore.MatchResult {
	size := 0
	for _, e := range elements {
		size += len(e) + 1
	}
	for i := len(rules) - 1; i >= 0 && *work > 0; i-- {
		*work -= rules[i].work(elements, size)
		if m := rules[i].match(elements, isDir); m != gitignore.NoMatch {
			return m
		}
	}
	return gitignore.NoMatch
}

// work is the most that match may cost; size is the length of elements in bytes.
func (r ignoreRule) work(elements []string, size int) int {
	switch {
	case !r.whole:
		return r.cost * (1 + len(elements[len(elements)-1])*r.stars)
	case r.stars == 0:
		return 2 * r.cost
	}
	return 2 * r.cost * size
}

// match matches this very file or directory. The library's pattern also matches what lies below a
// match, which makes "!*/" include every file: the levels are walked by ignores instead.
func (r ignoreRule) match(elements []string, isDir bool) gitignore.MatchResult {
	last := len(elements) - 1
	if !r.whole {
		return r.pattern.Match(elements[last:], isDir)
	}
	parent := gitignore.NoMatch
	if last > 0 {
		parent = r.pattern.Match(elements[:last], true)
	}
	m := r.pattern.Match(elements, isDir)
	switch {
	case r.below && m != gitignore.NoMatch && last > 0 && parent != gitignore.NoMatch:
		return m // a/** is what lies below a, which the library takes for a match as well
	case r.below, parent != gitignore.NoMatch:
		return gitignore.NoMatch
	}
	return m
}
