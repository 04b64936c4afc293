package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// commandDeadline is what any one command of a test may take before it counts as hung.
const commandDeadline = 90 * time.Second

var vfsdPath, vfsctlPath string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vfsd-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// Other users run these in some tests.
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-race", "-o", dir+"/", "../cmd/vfsd", "../cmd/vfsctl")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	vfsdPath, vfsctlPath = filepath.Join(dir, "vfsd"), filepath.Join(dir, "vfsctl")
	os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	// A second of sleep at every exit, for goroutines that might still race, would be most of the run.
	os.Setenv("GORACE", "atexit_sleep_ms=0 exitcode=66")
	return m.Run()
}

// daemon is a running vfsd and the directories it works on.
type daemon struct {
	t                          *testing.T
	source, mnt, state, socket string
	http                       string // of the ready line, "" where there is no gateway
	args                       []string
	inPIDNamespace             bool // run the daemon in a pid namespace of its own
	cmd                        *exec.Cmd
	stderr                     *output
	exited                     chan struct{}
}

// output collects what a process prints while it runs.
type output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startMount serves a fresh source on a fresh mountpoint with "vfsd mount" and further flags.
func startMount(t *testing.T, flags ...string) *daemon {
	t.Helper()
	d := newDaemon(t)
	d.args = append([]string{"mount", d.source, d.mnt}, flags...)
	d.start()
	return d
}

// startServe runs "vfsd serve" with further flags.
func startServe(t *testing.T, flags ...string) *daemon {
	t.Helper()
	d := newDaemon(t)
	d.args = append([]string{"serve"}, flags...)
	d.start()
	return d
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	dir := scratch(t)
	d := &daemon{
		t:      t,
		source: filepath.Join(dir, "src"),
		mnt:    filepath.Join(dir, "mnt"),
		state:  filepath.Join(dir, "state"),
		socket: filepath.Join(dir, "run", "vfsd.sock"),
	}
	require.NoError(t, os.Mkdir(d.source, 0o755))
	require.NoError(t, os.Mkdir(d.mnt, 0o755))
	return d
}

// scratch returns a directory that other users can enter and whose mounts are detached before it
// is removed.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vfsd-it-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		if left := mountsBelow(dir); len(left) > 0 {
			for _, m := range left {
				_ = unix.Unmount(m, unix.MNT_DETACH)
			}
			t.Errorf("mounts left behind: %v", left)
		}
		os.RemoveAll(dir)
	})
	return dir
}

// starter starts processes from one thread that lives as long as the tests do: the kernel kills what
// has a parent-death signal when the thread that started it ends, and so no daemon outlives a test
// binary that was ended by its time limit.
var starter = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startBound(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

func mountsBelow(dir string) []string {
	raw, _ := os.ReadFile("/proc/self/mounts")
	var found []string
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			found = append(found, f[1])
		}
	}
	return found
}

func (d *daemon) command() *exec.Cmd {
	args := append([]string(nil), d.args...)
	args = append(args, "--state-dir", d.state, "--socket", d.socket)
	if !strings.Contains(strings.Join(args, " "), "--http") {
		args = append(args, "--http", "127.0.0.1:0")
	}
	cmd := exec.Command(vfsdPath, args...)
	cmd.Env = os.Environ()
	if d.inPIDNamespace {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	return cmd
}

// start runs the daemon and returns when it printed its ready line.
func (d *daemon) start() {
	d.t.Helper()
	d.cmd = d.command()
	d.stderr = &output{}
	d.cmd.Stderr = d.stderr
	stdout, err := d.cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, startBound(d.cmd))
	ready := make(chan string, 1)
	d.exited = make(chan struct{})
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		ready <- line
		_, _ = io.Copy(io.Discard, stdout)
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	d.t.Cleanup(d.stop)
	select {
	case line := <-ready:
		d.parseReady(line)
	case <-time.After(30 * time.Second):
		d.t.Fatalf("vfsd is not ready after 30 s: %s", d.stderr)
	}
}

func (d *daemon) parseReady(line string) {
	d.t.Helper()
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] != "ready" {
		<-d.exited
		d.t.Fatalf("vfsd %v is not ready: %q %s", d.args, line, d.stderr)
	}
	for _, f := range fields[1:] {
		if addr, ok := strings.CutPrefix(f, "http="); ok {
			d.http = addr
		}
	}
}

// stop ends the daemon as a user would and fails the test where that leaves anything.
func (d *daemon) stop() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	d.wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		d.t.Errorf("vfsd ended with status %d: %s", code, d.stderr)
	}
	d.checkStderr()
	d.cmd = nil
}

// kill ends the daemon as a crash would; its dead mount stays for the next start to take over.
func (d *daemon) kill() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Kill())
	d.wait()
	d.checkStderr()
	d.cmd = nil
	d.t.Cleanup(func() { _ = unix.Unmount(d.mnt, unix.MNT_DETACH) })
}

func (d *daemon) wait() {
	select {
	case <-d.exited:
	case <-time.After(30 * time.Second):
		_ = unix.Unmount(d.mnt, unix.MNT_DETACH)
		_ = d.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-d.exited:
		case <-time.After(5 * time.Second):
			_ = d.cmd.Process.Kill()
			<-d.exited
		}
		d.t.Errorf("vfsd did not end within 30 s: %s", d.stderr)
	}
}

func (d *daemon) checkStderr() {
	for _, bad := range []string{"DATA RACE", "panic", "goroutine "} {
		if strings.Contains(d.stderr.String(), bad) {
			d.t.Errorf("vfsd printed %q: %s", bad, d.stderr)
			return
		}
	}
}

// path is a file below the mountpoint.
func (d *daemon) path(name string) string { return filepath.Join(d.mnt, name) }

// write makes a file through the mount from this process.
func (d *daemon) write(name, content string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(d.path(name), []byte(content), 0o644))
}

// result is what a finished command left.
type result struct {
	stdout, stderr string
	status         int
}

// exec runs a command to its end in the mount with the daemon's socket in its environment.
func (d *daemon) exec(env []string, name string, args ...string) result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = d.mnt
	if strings.HasPrefix(d.args[0], "serve") {
		cmd.Dir = d.source
	}
	cmd.Env = append(os.Environ(), "VFSD_SOCKET="+d.socket)
	cmd.Env = append(cmd.Env, env...)
	// What it started must not go on writing under the next test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		d.t.Fatalf("%s %v: %v: %s", name, args, err, stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// sh runs a shell script in the mount and returns what it printed; any failing command fails the
// test.
func (d *daemon) sh(script string, env ...string) string {
	d.t.Helper()
	r := d.exec(env, "bash", "-euo", "pipefail", "-c", script)
	require.Zero(d.t, r.status, "%s\n%s%s", script, r.stdout, r.stderr)
	return r.stdout
}

// ctl runs vfsctl and returns what it printed; a status other than 0 fails the test.
func (d *daemon) ctl(args ...string) string {
	d.t.Helper()
	r := d.exec(nil, vfsctlPath, args...)
	require.Zero(d.t, r.status, "vfsctl %v: %s", args, r.stderr)
	return r.stdout
}

// ctlStatus runs vfsctl where it should fail and returns its status and message.
func (d *daemon) ctlStatus(args ...string) (int, string) {
	d.t.Helper()
	r := d.exec(nil, vfsctlPath, args...)
	return r.status, r.stderr
}

// tool runs a shell script as a tool use.
func (d *daemon) tool(id, script string, flags ...string) string {
	d.t.Helper()
	args := append([]string{"run", "--tool-use", id}, flags...)
	return d.ctl(append(args, "--", "bash", "-euo", "pipefail", "-c", script)...)
}
