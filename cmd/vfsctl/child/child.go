// Package child runs a command as if nothing stood between it and its caller.
//
// # What the command has from its caller
//
// Its descriptors (not only the first three), its process group and terminal, its limits, its signal mask,
// and the signals that the caller ignored, as far as a Go program can know them (see ignored). What
// the command does reaches the caller: its exit status, and its stops, so that job control works.
//
// # Signals
//
// The terminal sends its signals to the whole foreground process group: the command has them already
// and they are not passed on. Every other signal that reaches this process alone is.
//
// # Hazards
//
// While Run runs, this process catches every signal that can be caught, and stops when the command
// stops. It is for a program that does nothing else meanwhile.
package child

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The statuses of a command that was not run, as the shell gives them.
const (
	StatusNotExecutable = 126
	StatusNotFound      = 127
	statusSignal        = 128 // plus the signal's number
)

// Command is what to run, found and not yet started.
type Command struct {
	path string
	argv []string

	signals chan os.Signal
	ignored map[syscall.Signal]bool
	resumed atomic.Int64 // when this process last went on after a stop; nanoseconds
}

// NotRun says why a command cannot be run and what the shell's status for that is.
type NotRun struct {
	Status int
	Err    error
}

func (e *NotRun) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotRun) Unwrap() error { return e.Err }

// Find looks for argv[0] as execvp(3) does. Its error is a *NotRun.
func Find(argv []string) (*Command, error) {
	path, err := find(argv[0])
	if err != nil {
		return nil, notRun(argv[0], err)
	}
	return &Command{path: path, argv: argv}, nil
}

func notRun(name string, err error) *NotRun {
	status := StatusNotExecutable
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		status, err = StatusNotFound, errors.New("no such command")
	}
	return &NotRun{status, fmt.Errorf("%s: %w: check its name and its mode", name, err)}
}

// find goes on past what it may not run and remembers that there was something.
func find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var found error = syscall.ENOENT
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir == "" {
			dir = "." // by POSIX, an empty element is the current directory
		}
		p := dir + "/" + name
		err := executable(p)
		if err == nil {
			return p, nil
		}
		if errors.Is(err, syscall.EACCES) {
			found = err
		}
	}
	return "", found
}

func executable(path string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// Hold keeps the signals from here on for the command, so that what has to be done before it runs
// cannot be left half done. Run passes them on.
func (c *Command) Hold() {
	c.ignored = ignored()
	c.signals = make(chan os.Signal, 64)
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if passed(s) && !c.ignored[s] {
			signal.Notify(c.signals, s)
		}
	}
}

// Release undoes Hold for a command that is not run after all.
func (c *Command) Release() { signal.Stop(c.signals) }

// Run starts the command, after Hold, and returns its exit status when it has ended, 128+n where
// signal n ended it. Its error is a *NotRun.
func (c *Command) Run(env []string) (status int, err error) {
	defer c.Release()
	pid, err := c.start(env)
	if err != nil {
		return 0, notRun(c.argv[0], err)
	}
	held := len(c.signals)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.pass(pid, held, done)
	}()
	status = c.follow(pid)
	close(done)
	<-finished
	return status, nil
}

// start makes no os.File of the first three descriptors: it would change their mode, which is shared
// with every other process that has them. ForkExec restores the limit on descriptors that Go raised.
func (c *Command) start(env []string) (pid int, err error) {
	// What is ignored here stays ignored there. Signals that Go has put a handler over are made so again.
	for s := range c.ignored {
		signal.Ignore(s)
	}
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}}
	pid, err = syscall.ForkExec(c.path, c.argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without an interpreter line, as execvp(3) runs it.
		argv := append([]string{"sh", c.path}, c.argv[1:]...)
		pid, err = syscall.ForkExec("/bin/sh", argv, attr)
	}
	return pid, err
}

// follow waits for the command to end and meanwhile stops and goes on with it.
func (c *Command) follow(pid int) (status int) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return statusSignal - 1 // 127: it cannot be known how it ended
		case ws.Exited():
			return ws.ExitStatus()
		case ws.Signaled():
			return statusSignal + int(ws.Signal())
		case ws.Stopped():
			c.resumed.Store(math.MaxInt64) // not yet
			stopWith(pid)
			c.resumed.Store(time.Now().UnixNano())
		}
	}
}

// stopWith stops this process, for the caller's job control to see, and once the caller continues it
// continues the command, where it was not continued together with it.
func stopWith(pid int) {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	if continued(pid) {
		return
	}
	// The shell continues the whole group, and this process may be the first one in it to run.
	time.Sleep(groupTime)
	if !continued(pid) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// groupTime is plenty for the kernel to send one signal to all of a process group.
const groupTime = 5 * time.Millisecond

// continued reports whether the command was sent SIGCONT since it stopped, or has even stopped again or
// ended meanwhile. The kernel notes that when the signal is sent, not when the command gets to run. What
// it noted is left for follow.
func continued(pid int) bool {
	var info unix.Siginfo
	const news = unix.WCONTINUED | unix.WSTOPPED | unix.WEXITED | unix.WNOHANG | unix.WNOWAIT
	err := unix.Waitid(unix.P_PID, pid, &info, news, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}
