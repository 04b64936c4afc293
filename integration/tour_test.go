package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTour types the commands of the README's tour and compares what they print with what stands
// there, but for what differs from run to run: ids, tokens, times and paths.
func TestTour(t *testing.T) {
	steps := tour(t)
	require.NotEmpty(t, steps)

	d := newDaemon(t)
	dir := filepath.Dir(d.source)
	require.NoError(t, os.Rename(d.source, filepath.Join(dir, "workspace")))
	d.source = filepath.Join(dir, "workspace")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	require.NoError(t, os.Symlink(vfsctlPath, filepath.Join(dir, "bin", "vfsctl")))
	d.args = []string{"mount", "--http", "127.0.0.1:8750", d.source, d.mnt}
	d.start()

	for _, s := range steps {
		cmd := exec.Command("bash", "-c", s.command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "VFSD_SOCKET="+d.socket)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, normal(s.output), normal(string(out)), s.command)
	}
}

type step struct{ command, output string }

// tour reads the steps between the tour's marks in the README: indented or fenced blocks in which a
// command follows "$ " and its output stands below.
func tour(t *testing.T) []step {
	t.Helper()
	raw, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(raw), "<!-- tour -->")
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "<!-- /tour -->")
	require.True(t, ok)
	var steps []step
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			continue
		}
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command})
		} else if len(steps) > 0 {
			steps[len(steps)-1].output += line
		}
	}
	return steps
}

var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`), "ID"},
	{regexp.MustCompile(`/d/[A-Za-z0-9_-]{43}`), "/d/TOKEN"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?`), "TIME"},
	{regexp.MustCompile(`\d+ ?(ms|s|m|h) ago\b|\bnow\b`), "AGE"},
	{regexp.MustCompile(`mnt-[0-9a-f]{6}`), "SESSION"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

func normal(s string) string {
	for _, v := range varying {
		s = v.pattern.ReplaceAllString(s, v.as)
	}
	return strings.TrimSpace(s)
}
