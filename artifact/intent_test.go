package artifact

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseIntent(t *testing.T) {
	for raw, want := range map[string]string{
		"true": "yes", "TRUE": "yes", "1": "yes", "yes": "yes", "On": "yes", " true\n": "yes", "true\x00": "yes", "\x00 on \t": "yes",
		"false": "no", "0": "no", "No": "no", "oFF": "no", "false\x00\x00": "no",
		"": "unset", "maybe": "unset", "2": "unset", "tr ue": "unset", "true\x00false": "unset", "\xff": "unset", "ｔｒｕｅ": "unset",
		"true" + strings.Repeat(" ", 100): "unset",
	} {
		value, ok := ParseIntent([]byte(raw))
		got := map[bool]string{true: "yes", false: "no"}[value]
		if !ok {
			require.False(t, value)
			got = "unset"
		}
		require.Equal(t, want, got, "%q", raw)
	}
}

func TestDecisionOrder(t *testing.T) {
	yes, no := true, false
	set := map[string]*bool{"": nil, "y": &yes, "n": &no}
	for _, c := range []struct {
		name               string
		path               string
		own, tool, dir     string // "", y, n
		ignored, artifacts bool
		want               bool
		reason             string
	}{
		{"own yes beats all", "/node_modules/x.py", "y", "n", "n", true, false, true, ReasonAttribute},
		{"own no beats all", "/a.pdf", "n", "y", "y", false, true, false, ReasonAttribute},
		{"tool use's no beats a directory's yes", "/a", "", "n", "y", false, true, false, ReasonToolUse},
		{"directory's no beats a tool use's yes", "/a", "", "y", "n", false, true, false, ReasonDirectory},
		{"ignored beats a tool use's yes", "/a", "", "y", "", true, true, false, ReasonIgnored},
		{"built-in rule beats a directory's yes", "/.git/a", "", "", "y", false, true, false, ReasonVCS},
		{"ignored is told before built-in", "/.git/a", "", "", "", true, true, false, ReasonIgnored},
		{"tool use's yes beats the script rule", "/a.py", "", "y", "", false, false, true, ReasonToolUse},
		{"directory's yes beats the script rule", "/a.py", "", "", "y", false, false, true, ReasonDirectory},
		{"script", "/a.PY", "", "", "", false, true, false, ReasonScript},
		{"default yes", "/a", "", "", "", false, true, true, ReasonDefault},
		{"default no", "/a", "", "", "", false, false, false, ReasonDefault},
		{"declared yes where artifacts are off", "/a", "", "y", "", false, false, true, ReasonToolUse},
		{"ignore file itself, whatever it says", "/.artifactignore", "y", "y", "y", false, true, false, ReasonIgnoreFile},
		{"another file of that name", "/d/.artifactignore", "", "", "", false, true, true, ReasonDefault},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decide(evidence{path: c.path, own: set[c.own], toolUse: set[c.tool], directory: set[c.dir],
				ignored: func(string) bool { return c.ignored }, standard: c.artifacts})
			require.Equal(t, Decision{c.want, c.reason}, got)
		})
	}
}

func TestBuiltIn(t *testing.T) {
	for path, want := range map[string]string{
		"/.git/config": ReasonVCS, "/a/.git/objects/ab/cd": ReasonVCS, "/sub/.git": ReasonVCS, "/.svn/x": ReasonVCS,
		"/node_modules/a/b.js": ReasonDependency, "/p/.venv/bin/python": ReasonDependency, "/venv/pyvenv.cfg": ReasonDependency,
		"/__pycache__/a.pyc": ReasonCache, "/a.pyc": ReasonCache, "/.cache/x": ReasonCache, "/.DS_Store": ReasonCache,
		"/a.txt~": ReasonTemporary, "/.a.swp": ReasonTemporary, "/.#a": ReasonTemporary, "/#a#": ReasonTemporary,
		"/.~lock.a.odt#": ReasonTemporary, "/~$a.docx": ReasonTemporary, "/a.tmp": ReasonTemporary, "/x.db-wal": ReasonTemporary,
		"/x.crdownload": ReasonTemporary,

		"/report.pdf": "", "/target/report.pdf": "", "/build/app": "", "/dist/a.zip": "", "/vendor/list.csv": "",
		"/dump.bak": "", "/package-lock.json": "", "/Cargo.lock": "", "/travel-journal": "", "/.gitignore": "",
		"/.env": "", "/node_modules": "", "/venv": "", "/git/a": "", "/#1": "", "/##": "", "/cache/a": "",
	} {
		require.Equal(t, want, builtIn(path), path)
	}
}

func TestIgnores(t *testing.T) {
	for _, c := range []struct {
		text    string
		ignored []string
		kept    []string
	}{
		{"*.log", []string{"/a.log", "/d/e/a.log"}, []string{"/a.txt", "/log"}},
		{"*.log\n!keep.log", []string{"/a.log"}, []string{"/keep.log", "/d/keep.log"}},
		{"# comment\n\n \n\\#a", []string{"/#a"}, []string{"/ comment", "/a"}},
		{"/top", []string{"/top", "/top/x"}, []string{"/d/top"}},
		{"d/", []string{"/d/x", "/a/d/x"}, []string{"/d", "/a/d"}},
		{"d/e", []string{"/d/e", "/d/e/x"}, []string{"/a/d/e"}},
		{"d/\n!d/keep", []string{"/d/x", "/d/keep"}, nil},
		{"*\n!*/\n!*.pdf", []string{"/a.txt", "/d/a.txt"}, []string{"/a.pdf", "/d/e/a.pdf"}},
		{"/*\n!/out/", []string{"/a", "/d/a"}, []string{"/out/a", "/out/d/a"}},
		{"*\n!/out/", []string{"/a", "/out/a"}, nil},
		{"a/**", []string{"/a/x", "/a/b/x"}, []string{"/a", "/b/a/x"}},
		{"a/**\n!a/keep", []string{"/a/x"}, []string{"/a/keep"}},
		{"**/foo", []string{"/foo", "/a/foo", "/a/b/foo/x"}, []string{"/foobar"}},
		{"a/**/b", []string{"/a/b", "/a/x/b", "/a/x/y/b"}, []string{"/b", "/x/a/b"}},
		{"a?.[ch]\r\nb", []string{"/ab.c", "/b"}, []string{"/a.c", "/ab.d"}},
		{"[", nil, []string{"/[", "/a"}},
		{"/\n!\n//", nil, []string{"/a"}},
		{"", nil, []string{"/a"}},
	} {
		rules, complete := parseIgnore(c.text)
		require.True(t, complete)
		for _, p := range c.ignored {
			require.True(t, ignores(rules, p), "%q on %s", c.text, p)
		}
		for _, p := range c.kept {
			require.False(t, ignores(rules, p), "%q on %s", c.text, p)
		}
	}
	rules, complete := parseIgnore(strings.Repeat("a\n", maxIgnorePatterns+1))
	require.False(t, complete)
	require.Len(t, rules, maxIgnorePatterns)
}

func TestIgnoreFileIsParsedWhenItChanged(t *testing.T) {
	tree := &ignoreTree{}
	f := ignoreFile{tree: tree, log: slog.New(slog.DiscardHandler)}
	require.Empty(t, f.current())
	tree.set("*.log")
	for range 3 {
		require.True(t, ignores(f.current(), "/a.log"))
	}
	require.Equal(t, 1, tree.reads)
	tree.set("*.txt")
	require.False(t, ignores(f.current(), "/a.log"))
	require.True(t, ignores(f.current(), "/a.txt"))
	require.Equal(t, 2, tree.reads)
	tree.set(strings.Repeat("#\n", maxIgnoreSize))
	require.Empty(t, f.current(), "too large: not applied")
	tree.text = nil
	require.Empty(t, f.current())
}

// A decision ends soon, whatever the patterns and however deep the file; usual ones are all applied.
func TestIgnoreIsBounded(t *testing.T) {
	deep := strings.Repeat("/"+strings.Repeat("a", 200), 1000)
	hostile, _ := parseIgnore(strings.Repeat("**/"+strings.Repeat("*a", 10)+"b/x\n", maxIgnorePatterns))
	g := ignored{hostile, map[string]bool{}}
	began := time.Now()
	yes, all := g.excludes(deep)
	require.False(t, yes)
	require.False(t, all)
	require.Less(t, time.Since(began), 2*time.Second)

	usual, _ := parseIgnore("/first\n" + strings.Repeat("**/some/dir*/*.ext\n*.log\nbuild/\n", 100))
	g = ignored{usual, map[string]bool{}}
	yes, all = g.excludes("/src" + strings.Repeat("/directory", 8) + "/file.txt")
	require.False(t, yes)
	require.True(t, all)
	yes, _ = g.excludes("/first")
	require.True(t, yes)
}
