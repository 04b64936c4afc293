package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sh runs a script in the mount as a tool use.
func (m *mounted) sh(tool, script string) {
	m.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "TOOL="+tool)
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

// events waits until all releases are in and returns what happened since the last call.
func (m *mounted) events() []change.Event {
	m.t.Helper()
	_, events := m.command("settle 5s")
	return events
}

var kinds = map[change.Kind]string{
	change.Write: "write", change.Rename: "rename", change.RenameDir: "renamedir", change.Exchange: "exchange",
	change.Link: "link", change.Unlink: "unlink", change.Intent: "intent", change.Touch: "touch",
}

// story tells events one a line, files numbered as they come up. Repeated writes are told once.
func story(events []change.Event) []string {
	numbers := map[change.FileID]string{}
	number := func(f change.FileID) string {
		if f == (change.FileID{}) {
			return "-"
		}
		if numbers[f] == "" {
			numbers[f] = fmt.Sprint("#", len(numbers)+1)
		}
		return numbers[f]
	}
	var out []string
	for _, e := range events {
		line := kinds[e.Kind] + " " + number(e.File)
		if e.From != "" {
			line += " " + e.From + " ->"
		}
		line += " " + e.Path
		if e.Replaced != (change.FileID{}) {
			line += " over " + number(e.Replaced)
		}
		if e.Kind == change.Write {
			line += fmt.Sprintf(" (%d)", e.Stamp.Size)
		}
		if e.Who.ToolUseID != "" {
			line += " by " + e.Who.ToolUseID
		}
		if e.Who.Sureness == session.Ambiguous {
			line += " by one of " + strings.Join(e.Who.Candidates, ",")
		}
		if e.Last {
			line += " last"
		}
		if e.Directory {
			line += " dir"
		}
		if len(out) == 0 || out[len(out)-1] != line {
			out = append(out, line)
		}
	}
	return out
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, before, script string
		want                 []string
	}{
		{"redirect", "", "echo x > f", []string{"write #1 /f (0) by t", "write #1 /f (2) by t"}},
		{"empty", "", ": > f", []string{"write #1 /f (0) by t"}},
		{"append", "echo a > f", "echo b >> f", []string{"write #1 /f (4) by t"}},
		{"truncate and write", "echo abc > f", "echo x > f", []string{"write #1 /f (0) by t", "write #1 /f (2) by t"}},
		{"truncate alone", "echo abc > f", "truncate -s 1 f", []string{"write #1 /f (1) by t"}},
		{"read", "echo abc > f", "cat f; stat f; ls -l", nil},
		{"opened for writing, not written", "echo abc > f", "exec 3<>f; exec 3>&-", nil},
		{"touch", "echo abc > f", "touch f", []string{"touch #1 /f"}},
		{"chmod", "echo abc > f", "chmod 600 f; chown 5:6 f", []string{"touch #1 /f"}},
		{"chmod and write", "echo abc > f", "exec 3>>f; chmod 600 f; touch -d 2001-01-01 f; echo x >&3; touch -d 2001-01-01 f; exec 3>&-",
			[]string{"touch #1 /f", "write #1 /f (6) by t", "touch #1 /f"}},
		{"rename", "echo abc > f", "mv f g", []string{"rename #1 /f -> /g by t", "touch #1 /g"}},
		{"rename over", "echo abc > f; echo x > g", "mv f g", []string{"rename #1 /f -> /g over #2 by t", "touch #1 /g"}},
		{"temp then rename", "echo abc > f", "echo new > f.tmp; mv f.tmp f",
			[]string{"write #1 /f.tmp (0) by t", "write #1 /f.tmp (4) by t", "rename #1 /f.tmp -> /f over #2 by t", "touch #1 /f"}},
		{"directory", "mkdir d; echo x > d/f", "mv d e; echo y > e/f; mkdir e/sub; rmdir e/sub",
			[]string{"renamedir #1 /d -> /e by t dir", "write #2 /e/f (0) by t", "write #2 /e/f (2) by t"}},
		{"rename with it open", "echo abc > f", "exec 3>>f; mv f g; echo x >&3; exec 3>&-",
			[]string{"rename #1 /f -> /g by t", "touch #1 /g", "write #1 /g (6) by t"}},
		{"link", "echo abc > f", "ln f g; rm f", []string{"link #1 /f -> /g by t", "touch #1 /g", "unlink #1 /f", "touch #1 /g"}},
		{"unlink", "echo abc > f", "rm f", []string{"unlink #1 /f last"}},
		{"unlink open", "", "exec 3>f; rm f; echo x >&3; exec 3>&-", []string{"write #1 /f (0) by t", "unlink #1 /f last", "write #1  (2) by t"}},
		{"symlink", "", "ln -s x l; mv l l2; rm l2", nil},
		{"symlink over file", "echo x > f", "ln -s x l; mv l f", []string{"unlink #1 /f last"}},
		{"intent", "echo x > f; mkdir d", "setfattr -n user.aimon.artifact -v true f; setfattr -n user.aimon.artifact -v false d; setfattr -x user.aimon.artifact f",
			[]string{"touch #1 /f", "intent #1 /f", "intent #2 /d dir", "touch #1 /f", "intent #1 /f"}},
		{"other xattr", "echo x > f", "setfattr -n user.x -v true f", []string{"touch #1 /f"}},
		{"sed -i", "echo abc > f", "sed -i s/b/B/ f", nil},
		{"fifo", "", "mkfifo p; rm p", nil},
		{"fallocate", "echo abc > f", "fallocate -l 100 f", []string{"write #1 /f (100) by t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
				if c.before != "" {
					m.sh("before", c.before)
				}
				m.events()
				m.sh("t", c.script)
				got := story(m.events())
				if c.name == "sed -i" { // its temporary name is random
					require.Contains(t, strings.Join(got, "\n"), "-> /f over")
					return
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

func TestExchangeEvent(t *testing.T) {
	inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
		m.sh("t", "echo a > a; mkdir d; echo x > d/x")
		m.events()
		require.NoError(t, unix.Renameat2(unix.AT_FDCWD, m.path("a"), unix.AT_FDCWD, m.path("d"), unix.RENAME_EXCHANGE))
		require.NoError(t, os.WriteFile(m.path("a/y"), nil, 0o644))
		require.Equal(t, []string{"exchange #1 /a -> /d over #2", "touch #1 /d", "write #3 /a/y (0)"}, story(m.events()))
	})
}

func TestTmpfileEvent(t *testing.T) {
	inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
		fd, err := unix.Open(m.dir, unix.O_TMPFILE|unix.O_RDWR, 0o644)
		require.NoError(t, err)
		_, err = unix.Write(fd, []byte("abc"))
		require.NoError(t, err)
		require.NoError(t, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, m.path("f"), unix.AT_SYMLINK_FOLLOW))
		require.NoError(t, unix.Close(fd))
		events := m.events()
		require.Equal(t, []string{"write #1  (0)", "link #1 /f"}, story(events)[:2])
		last := events[len(events)-1]
		require.Equal(t, change.Write, last.Kind)
		require.Equal(t, "/f", last.Path)
		require.EqualValues(t, 3, last.Stamp.Size)
	})
}

// TestWriters: two tool uses have a file open for writing. What the kernel carries out by itself
// cannot be told apart, and is not guessed.
func TestWriters(t *testing.T) {
	inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
		m.sh("setup", "echo x > f; mkfifo go1 go2")
		m.events()
		a := exec.Command("sh", "-c", "exec 3>>f; echo a >&3; : > go1; read x < go2")
		a.Dir, a.Env = m.dir, append(os.Environ(), "TOOL=a")
		require.NoError(t, a.Start())
		_, err := os.ReadFile(m.path("go1"))
		require.NoError(t, err)
		m.sh("b", "echo b >> f")
		require.NoError(t, os.WriteFile(m.path("go2"), []byte("x\n"), 0))
		require.NoError(t, a.Wait())
		got := story(m.events())
		require.Equal(t, "write #1 /f (4) by a", got[0], "what was written before b came is a's alone")
		require.Len(t, got, 2)
		if m.ready.Passthrough {
			require.Equal(t, "write #1 /f (6) by one of a,b", got[1])
		} else {
			require.Equal(t, "write #1 /f (6) by b", got[1])
		}
	})
}

func TestFacts(t *testing.T) {
	facts := func(s *spec) {
		s.Track, s.Facts = true, map[string]string{"user.aimon.tool_use_id": "call-1"}
	}
	inModes(t, facts, func(t *testing.T, m *mounted) {
		f := m.path("f")
		require.NoError(t, os.WriteFile(f, nil, 0o644))
		require.NoError(t, unix.Setxattr(m.below("f"), "user.aimon.tool_use_id", []byte("forged"), 0))
		require.NoError(t, unix.Setxattr(m.below("f"), "user.aimon.attribution", []byte("forged"), 0))
		buf := make([]byte, 100)
		n, err := unix.Getxattr(f, "user.aimon.tool_use_id", buf)
		require.NoError(t, err)
		require.Equal(t, "call-1", string(buf[:n]))
		n, err = unix.Getxattr(f, "user.aimon.tool_use_id", nil)
		require.NoError(t, err)
		require.Equal(t, 6, n)
		_, err = unix.Getxattr(f, "user.aimon.tool_use_id", buf[:3])
		require.Equal(t, unix.ERANGE, err)
		_, err = unix.Getxattr(f, "user.aimon.attribution", buf)
		require.Equal(t, unix.ENODATA, err)
		n, err = unix.Listxattr(f, buf)
		require.NoError(t, err)
		require.NotContains(t, string(buf[:n]), "aimon")
		require.Equal(t, unix.EPERM, unix.Setxattr(f, "user.aimon.tool_use_id", []byte("x"), 0))
		require.Equal(t, unix.EPERM, unix.Removexattr(f, "user.aimon.execution_id"))
		require.NoError(t, unix.Setxattr(f, "user.aimon.artifact", []byte("true"), 0))
	})
}

func TestSettle(t *testing.T) {
	inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
		cmd := exec.Command("sh", "-c", "exec 3>f; echo hello >&3; echo opened; read x || true")
		cmd.Dir, cmd.Env = m.dir, append(os.Environ(), "TOOL=long")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = out.Read(make([]byte, 10))
		require.NoError(t, err)
		began := time.Now()
		_, events := m.command("settle 5s long")
		require.Less(t, time.Since(began), 3*time.Second, "a live process is not waited for")
		require.Equal(t, []string{"write #1 /f (0) by long", "write #1 /f (6) by long"}, story(events))
		_, events = m.command("settle 5s long")
		require.Empty(t, events, "nothing changed since")
		in.Close()
		require.NoError(t, cmd.Wait())
		// A child goes on with a descriptor whose opener is gone: that is waited for, but not long.
		hold := exec.Command("sh", "-c", "exec 3>g; echo x >&3; sleep 30 > /dev/null 2>&1 & echo $!")
		hold.Dir, hold.Env = m.dir, append(os.Environ(), "TOOL=left")
		pid, err := hold.Output()
		require.NoError(t, err)
		began = time.Now()
		_, events = m.command("settle 300ms left")
		require.GreaterOrEqual(t, time.Since(began), 250*time.Millisecond)
		require.Contains(t, story(events), "write #1 /g (2) by left")
		require.NoError(t, exec.Command("kill", strings.TrimSpace(string(pid))).Run())
	})
}
