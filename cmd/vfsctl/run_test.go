package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/ctl/server/servertest"
)

// These tests run vfsctl itself, which TestMain has put into PATH, in front of a shell that tells what
// reaches it.

func daemonFor(t *testing.T) *servertest.Fake {
	f := servertest.New()
	f.AddSession("s1", 0)
	path, stop, err := serve(f)
	require.NoError(t, err)
	t.Cleanup(stop)
	t.Setenv("VFSD_SOCKET", path)
	return f
}

// teller says its pid, then the name of every signal that it gets; TERM ends it with status 9.
const teller = `for s in INT QUIT HUP USR1 USR2 WINCH CONT; do trap "echo got $s" $s; done
trap 'echo got TERM; exit 9' TERM
echo pid $$
while :; do read -t 0.05 x <&9; done 9<>"$FIFO"`

func startTeller(t *testing.T, attr *syscall.SysProcAttr) (*exec.Cmd, *bufio.Scanner, int) {
	fifo := t.TempDir() + "/fifo"
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	cmd := exec.Command("vfsctl", "run", "--tool-use", "t", "--", "bash", "-c", teller)
	cmd.Env = append(os.Environ(), "FIFO="+fifo)
	cmd.SysProcAttr = attr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	var pid int
	require.True(t, lines.Scan())
	_, err = fmt.Sscanf(lines.Text(), "pid %d", &pid)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	return cmd, lines, pid
}

func next(t *testing.T, lines *bufio.Scanner) string {
	require.True(t, lines.Scan(), "the command has ended")
	return lines.Text()
}

func TestSignalsSentToRunReachTheCommandOnce(t *testing.T) {
	f := daemonFor(t)
	cmd, lines, _ := startTeller(t, &syscall.SysProcAttr{Setsid: true})
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} {
		require.NoError(t, cmd.Process.Signal(s))
		require.Equal(t, "got "+strings.TrimPrefix(unix.SignalName(s), "SIG"), next(t, lines))
	}
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
	require.Equal(t, "got TERM", next(t, lines))
	require.False(t, lines.Scan(), "nothing arrived twice")
	require.Equal(t, 9, exitOf(t, cmd))
	tool, ok := f.Tool("t")
	require.True(t, ok)
	require.False(t, tool.Open())
}

func exitOf(t *testing.T, cmd *exec.Cmd) int {
	var e *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &e)
	return e.ExitCode()
}

func TestRunStopsAndContinuesWithItsCommand(t *testing.T) {
	daemonFor(t)
	cmd, lines, pid := startTeller(t, &syscall.SysProcAttr{Setsid: true})
	for range 3 {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
		require.NoError(t, err)
		require.True(t, ws.Stopped(), "run stops when its command does")
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		require.Equal(t, "got CONT", next(t, lines))
	}
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
	require.Equal(t, "got TERM", next(t, lines))
	require.Equal(t, 9, exitOf(t, cmd))
}

// openTerminal returns both ends of a new pseudo-terminal. The master's reads can have a deadline.
func openTerminal(t *testing.T) (fd int, master, slave *os.File) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return fd, master, slave
}

// terminalShell is an interactive shell on a terminal.
type terminalShell struct {
	t      *testing.T
	fd     int // the master's
	master *os.File
	seen   strings.Builder
}

func (s *terminalShell) send(text string) {
	_, err := io.WriteString(s.master, text)
	require.NoError(s.t, err)
}

// until reads until the terminal shows text, and returns what it showed before.
func (s *terminalShell) until(text string) string {
	b := make([]byte, 1024)
	require.NoError(s.t, s.master.SetReadDeadline(time.Now().Add(time.Minute)))
	for {
		if before, after, ok := strings.Cut(s.seen.String(), text); ok {
			s.seen.Reset()
			s.seen.WriteString(after)
			return before
		}
		n, err := s.master.Read(b)
		require.NoError(s.t, err, "the terminal showed %q, not %q", s.seen.String(), text)
		s.seen.Write(b[:n])
	}
}

func startShell(t *testing.T) *terminalShell {
	fd, master, slave := openTerminal(t)
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "PS1=ready:", "FIFO="+t.TempDir()+"/fifo", "TELLER="+teller)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	slave.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s := &terminalShell{t: t, fd: fd, master: master}
	s.until("ready:")
	s.send("stty -echo; mkfifo $FIFO\n")
	s.until("ready:")
	return s
}

func TestRunOnATerminal(t *testing.T) {
	f := daemonFor(t)
	s := startShell(t)
	s.send("vfsctl run --tool-use t -- bash -c \"$TELLER\"\n")
	s.until("pid ")
	s.until("\n")

	s.send("\x03")
	s.until("got INT")
	s.send("\x1c")
	require.NotContains(t, s.until("got QUIT"), "got", "ctrl-C reached the command once")
	require.NoError(t, unix.IoctlSetWinsize(s.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 90}))
	require.NotContains(t, s.until("got WINCH"), "got")

	// Suspended and resumed by the shell's job control, twice.
	for range 2 {
		s.send("\x1a")
		require.NotContains(t, s.until("Stopped"), "got")
		s.until("ready:")
		s.send("fg\n")
		s.until("got CONT")
	}
	s.send("\x1a")
	require.NotContains(t, s.until("Stopped"), "got")
	s.until("ready:")
	s.send("bg; kill %1; wait %1; echo status $?\n")
	s.until("status 9")
	s.until("ready:")
	tool, ok := f.Tool("t")
	require.True(t, ok)
	require.False(t, tool.Open())

	// The terminal belongs to the shell again, and ctrl-C during a plain command is 130.
	s.send("vfsctl run --tool-use t2 -- bash -c 'echo started; sleep 100'\n")
	s.until("started")
	s.send("\x03")
	s.until("ready:")
	s.send("echo status $?\n")
	s.until("status 130")
}
