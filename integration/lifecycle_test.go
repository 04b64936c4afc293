package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestRestartKeepsEverything(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `echo one > a.txt`)
	d.write("open.txt", "x")
	before := d.writes()
	d.stop()
	require.FileExists(t, filepath.Join(d.source, "a.txt"))
	require.Empty(t, mountsBelow(filepath.Dir(d.mnt)))
	d.start()
	require.Equal(t, before, d.writes())
	d.ctl("check")
}

func TestKillKeepsWhatEnded(t *testing.T) {
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		d.tool("call_1", `for i in $(seq 50); do echo $i > f$i.txt; done`)
		d.ctl("tool", "begin", "call_2")
		d.write("window.txt", "x")
		d.recorded()
		d.kill()
		d.start()
		require.Len(t, d.artifacts("--tool-use", "call_1"), 50)
		d.tool("call_3", `echo x > after.txt`)
		require.Len(t, d.artifacts("--tool-use", "call_3"), 1)
		require.Contains(t, d.ctl("tool", "list"), "call_2")
		d.ctl("tool", "end", "call_2")
		r := byPath(t, d.writes(), "/window.txt")
		require.Equal(t, "window", r.Attribution)
		require.True(t, r.Final)
		d.ctl("check")
	})
}

// recorded waits until everything that happened is in the index.
func (d *daemon) recorded() {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		status := decode[struct{ RecordingLag int }](d.t, d.ctl("status", "--json"))
		return status.RecordingLag == 0
	}, commandDeadline, 20*time.Millisecond)
}

func TestBusyMountIsDetached(t *testing.T) {
	d := startMount(t)
	d.write("a.txt", "x")
	f, err := os.Open(d.path("a.txt"))
	require.NoError(t, err)
	defer f.Close()
	d.stop()
	require.Contains(t, d.lastStderr(), "detached")
}

func TestUnmountedFromOutside(t *testing.T) {
	d := startMount(t)
	require.NoError(t, unix.Unmount(d.mnt, 0))
	d.wait()
	require.Zero(t, d.cmd.ProcessState.ExitCode(), d.stderr)
	d.cmd = nil
}

func TestTwoSessionsSideBySide(t *testing.T) {
	d := startServe(t)
	dir := filepath.Dir(d.source)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "src-"+name), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "mnt-"+name), 0o755))
		d.ctl("mount", "--session", name, "--artifacts", "on", filepath.Join(dir, "src-"+name), filepath.Join(dir, "mnt-"+name))
	}
	// The same ids in both: they belong to their session.
	for _, name := range []string{"a", "b"} {
		d.ctl("execution", "begin", "--session", name, "--id", "turn")
		d.ctl("run", "--session", name, "--execution", "turn", "--tool-use", "call", "--",
			"sh", "-c", "echo x > "+filepath.Join(dir, "mnt-"+name, name+".txt"))
	}
	for _, name := range []string{"a", "b"} {
		rows := d.artifacts("--session", name)
		require.Equal(t, []string{"/" + name + ".txt"}, paths(rows))
		require.Equal(t, "call", rows[0].ToolUseID)
		require.Equal(t, name, rows[0].SessionID)
	}
	// A tool use of one session is no name in the other.
	d.ctl("run", "--session", "a", "--tool-use", "stray", "--", "sh", "-c", "echo x > "+filepath.Join(dir, "mnt-b", "stray.txt"))
	require.NotEqual(t, "stray", byPath(t, d.writes("--session", "b"), "/stray.txt").ToolUseID)

	code, message := d.ctlStatus("artifacts", "list")
	require.Equal(t, 6, code, message)
	d.ctl("unmount", filepath.Join(dir, "mnt-a"))
	require.Len(t, decode[[]map[string]any](t, d.ctl("mounts", "--json")), 1)
	d.ctl("session", "delete", "a")
	code, message = d.ctlStatus("artifacts", "list", "--session", "a")
	require.Equal(t, 3, code, message)
	d.ctl("check")
	d.ctl("unmount", filepath.Join(dir, "mnt-b"))
}

func TestRefusals(t *testing.T) {
	d := startMount(t, "--session", "taken")
	dir := filepath.Dir(d.source)
	mk := func(name string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(p, 0o755))
		return p
	}
	full := mk("full")
	require.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o644))
	file := filepath.Join(full, "x")
	foreign := mk("foreign")
	require.NoError(t, os.Symlink("/etc", filepath.Join(foreign, ".aimon")))
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()

	own := []string{"--state-dir", mk("state2"), "--socket", filepath.Join(dir, "run2", "s"), "--http", "off"}
	cases := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"no source", append([]string{"mount", dir + "/none", mk("m1")}, own...), 1, "does not exist"},
		{"source is a file", append([]string{"mount", file, mk("m1")}, own...), 1, "not a directory"},
		{"no mountpoint", append([]string{"mount", mk("s1"), dir + "/none"}, own...), 1, "mountpoint"},
		{"mountpoint not empty", append([]string{"mount", mk("s1"), full}, own...), 1, "not empty"},
		{"already mounted", append([]string{"mount", mk("s1"), d.mnt}, own...), 6, "mount"},
		{"same source", append([]string{"mount", d.source, mk("m1")}, own...), 6, "source"},
		{"source above a source", append([]string{"mount", dir, mk("/m1")}, own...), 6, "contains"},
		{"mountpoint inside its source", append([]string{"mount", mk("s1"), mk("s1/m")}, own...), 1, "s1"},
		{"source inside the mount", append([]string{"mount", d.mnt, mk("m1")}, own...), 6, "mount"},
		{"source above the state directory", append([]string{"mount", mk("state2"), mk("m1")}, own...), 1, "state directory"},
		{"foreign .aimon", append([]string{"mount", foreign, mk("m1")}, own...), 1, ".aimon"},
		{"live socket", []string{"mount", mk("s1"), mk("m1"), "--state-dir", mk("state2"), "--socket", d.socket, "--http", "off"}, 6, "socket"},
		{"live state directory", []string{"mount", mk("s1"), mk("m1"), "--state-dir", d.state, "--socket", filepath.Join(dir, "run2", "s"), "--http", "off"}, 6, "state directory"},
		{"http address in use", []string{"mount", mk("s1"), mk("m1"), "--state-dir", mk("state2"), "--socket", filepath.Join(dir, "run2", "s"), "--http", busy.Addr().String()}, 1, "--http"},
		{"bad session id", append([]string{"mount", mk("s1"), mk("m1"), "--session", "a b"}, own...), 2, "session id"},
		{"unknown owner", append([]string{"mount", mk("s1"), mk("m1"), "--owner", "no-such-user"}, own...), 2, "no such user"},
		{"no address", []string{"mount", mk("s1"), mk("m1"), "--session", "taken", "--state-dir", mk("state2"), "--socket", filepath.Join(dir, "run2", "s"), "--http", "junk"}, 2, "--http"},
		{"unknown flag", []string{"mount", "--nonsense"}, 2, "nonsense"},
		{"missing argument", []string{"mount", dir}, 2, "usage"},
		{"unknown verb", []string{"moun"}, 2, "moun"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := d.with(t)
			r := d.exec(nil, vfsdPath, c.args...)
			require.Equal(t, c.status, r.status, r.stderr)
			lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
			require.Len(t, lines, 1, r.stderr)
			require.Contains(t, r.stderr, c.says)
			require.Empty(t, r.stdout)
		})
	}
	code, message := d.ctlStatus("mount", "--session", "taken", mk("s1"), mk("m1"))
	require.Equal(t, 6, code, message)
	require.Len(t, decode[[]map[string]any](t, d.ctl("mounts", "--json")), 1)
	require.FileExists(t, file)
}

func TestStaleMountIsTakenOver(t *testing.T) {
	d := startMount(t)
	d.write("a.txt", "x")
	d.kill()
	_, err := os.Stat(d.mnt)
	require.Error(t, err)
	d.start()
	raw, err := os.ReadFile(d.path("a.txt"))
	require.NoError(t, err)
	require.Equal(t, "x", string(raw))
	require.Len(t, mountsBelow(filepath.Dir(d.mnt)), 1)
}

func TestStrangerFindsNothing(t *testing.T) {
	d := startMount(t, "--allow-other")
	d.tool("call_1", `echo secret > a.txt`)
	id := d.artifacts()[0].ID
	exec1 := d.artifacts()[0].ExecutionID
	for _, args := range [][]string{
		{"artifacts", "show", id}, {"artifacts", "get", id, "-o", "-"}, {"artifacts", "token", id}, {"artifacts", "remove", id},
		{"execution", "show", exec1}, {"execution", "end", exec1, "--status", "COMPLETED"}, {"execution", "mark", exec1},
		{"tool", "end", "call_1"}, {"session", "delete", d.artifacts()[0].SessionID},
		{"artifacts", "list", "--session", d.artifacts()[0].SessionID},
		{"writes", "--session", d.artifacts()[0].SessionID},
	} {
		r := d.asNobody(args...)
		require.Equal(t, 3, r.status, "%v: %s%s", args, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"session", "list"}, {"mounts"}, {"tokens", "list"}} {
		r := d.asNobody(append(args, "--json")...)
		require.Zero(t, r.status, r.stderr)
		require.JSONEq(t, "[]", r.stdout, args)
	}
	for _, args := range [][]string{{"unmount", d.mnt}, {"check"}, {"mount", "/usr", "/mnt"}} {
		r := d.asNobody(args...)
		require.Contains(t, []int{3, 5}, r.status, "%v: %s", args, r.stderr)
	}
	require.Len(t, d.artifacts(), 1)
}

func (d *daemon) asNobody(args ...string) result {
	d.t.Helper()
	cmd := []string{"-u", "nobody", "env", "VFSD_SOCKET=" + d.socket, vfsctlPath}
	return d.exec(nil, "sudo", append(cmd, args...)...)
}

// lastStderr is what the daemon printed, also after it was stopped.
func (d *daemon) lastStderr() string { return d.stderr.String() }

func TestExternalProgramsAreThere(t *testing.T) {
	for _, name := range []string{"git", "sqlite3", "python3", "rsync", "setfattr", "setfacl", "sudo", "bwrap", "flock", "tar"} {
		_, err := exec.LookPath(name)
		require.NoError(t, err, "run make deps")
	}
}
