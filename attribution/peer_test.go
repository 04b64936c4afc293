package attribution

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

// wait is a shell command that tells its pid and then blocks until told a line or the end of input.
const wait = `echo $$; read x`

// helperEnv makes the test binary a helper process.
const helperEnv = "ATTRIBUTION_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "thread":
		helpThread()
	}
}

// helpThread tells the id of a thread that is not its process's first, and blocks.
func helpThread() {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread was picked: another goroutine gets another one while this is locked.
			inner := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				tellThread()
				close(inner)
			}()
			<-inner
		} else {
			tellThread()
		}
		close(done)
	}()
	<-done
}

func tellThread() {
	fmt.Println(unix.Gettid())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// peer is a tree of processes of a test that talks through its standard input and output.
type peer struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs a program with exactly that environment beside PATH. At the end of the test its input ends
// and everything that holds its output is waited for.
func start(t *testing.T, env []string, argv ...string) *peer {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	hold, letGo, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.ExtraFiles = w, []*os.File{hold}
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	require.NoError(t, hold.Close())
	p := &peer{t: t, cmd: cmd, in: in, out: bufio.NewReader(r)}
	t.Cleanup(func() {
		_ = in.Close()
		_ = letGo.Close()
		_, _ = io.Copy(io.Discard, r)
		_ = cmd.Wait()
		_ = r.Close()
	})
	return p
}

func (p *peer) say(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

func (p *peer) hear() string {
	p.t.Helper()
	s, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	return strings.TrimSpace(s)
}

// pid reads a line with the number of a process that is blocked now.
func (p *peer) pid() uint32 {
	p.t.Helper()
	n, err := strconv.Atoi(p.hear())
	require.NoError(p.t, err)
	return uint32(n)
}

// process is the peer's first process.
func (p *peer) process() session.Process { return lookup(p.t, p.cmd.Process.Pid) }

// born is when the peer's first process started.
func (p *peer) born(t *testing.T) time.Time {
	t.Helper()
	_, offset, _ := readClocks()
	return time.Unix(0, int64(p.process().Start)*int64(tick)+offset)
}

func lookup(t *testing.T, pid int) session.Process {
	t.Helper()
	who, err := proc.Lookup(pid)
	require.NoError(t, err)
	return who
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func resolver(t *testing.T, f *fakeRegistry, opts ...Option) *Resolver {
	t.Helper()
	r := New("s1", f, quiet(), append([]Option{WithDeadline(5 * time.Second)}, opts...)...)
	t.Cleanup(r.Close)
	return r
}

func ask(r *Resolver, pid uint32) session.Attribution {
	return r.Attribute(context.Background(), pid, 0)
}

func env(id string) []string { return []string{"VFSD_TOOL_USE_ID=" + id} }

// startExact runs a program with that environment to the letter, duplicates and order kept. It is
// certain to run the program when this returns.
func startExact(t *testing.T, path string, env []string) *peer {
	t.Helper()
	in, w, err := os.Pipe()
	require.NoError(t, err)
	r, out, err := os.Pipe()
	require.NoError(t, err)
	p, err := os.StartProcess(path, []string{path}, &os.ProcAttr{Env: env, Files: []*os.File{in, out, os.Stderr}})
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	t.Cleanup(func() {
		_ = w.Close()
		_, _ = p.Wait()
		_ = r.Close()
	})
	return &peer{t: t, cmd: &exec.Cmd{Process: p}, in: w, out: bufio.NewReader(r)}
}
