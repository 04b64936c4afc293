package child

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const lastSignal = syscall.Signal(64)

// passed reports whether a signal is caught and passed on. Left out are those that cannot be caught, that
// are about this process itself (faults, its child, its pipes, its timers), that the Go runtime and the C
// library use, and SIGCONT, which stopWith sees to.
func passed(s syscall.Signal) bool {
	switch s {
	case unix.SIGKILL, unix.SIGSTOP, unix.SIGCONT, unix.SIGCHLD, unix.SIGPIPE, unix.SIGURG, unix.SIGPROF,
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGSYS, unix.SIGSTKFLT,
		32, 33, 34:
		return false
	}
	return true
}

// fromTerminal reports whether the kernel sends s to a foreground process group: the command has had
// it then.
func fromTerminal(s syscall.Signal) bool {
	switch s {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGTTIN, unix.SIGTTOU, unix.SIGHUP:
		return foreground()
	}
	return false
}

// dispatchTime is plenty for a caught signal to get from the runtime's handler to pass.
const dispatchTime = 100 * time.Millisecond

// stale reports whether s is a stop signal from before this process went on. The one of a ctrl-Z may
// arrive only now, when the shell has the terminal back and fromTerminal cannot tell any more. The kernel too
// forgets pending stop signals at SIGCONT.
func (c *Command) stale(s syscall.Signal) bool {
	switch s {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return time.Since(time.Unix(0, c.resumed.Load())) < dispatchTime
	}
	return false
}

// foreground reports whether this process is in the foreground of its terminal, where it has one.
func foreground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// pass sends the command what reaches this process alone. The first held signals came before there was
// a command: whoever sent them, it has not had them.
func (c *Command) pass(pid, held int, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case s := <-c.signals:
			sig := s.(syscall.Signal)
			if held > 0 {
				held--
			} else if fromTerminal(sig) || c.stale(sig) {
				continue
			}
			_ = syscall.Kill(pid, sig)
		}
	}
}

// ignored returns the signals that the caller ignores, for nohup and background jobs. The Go runtime
// keeps SIGHUP, SIGINT and the terminal's stop signals ignored and puts its handler over all
// others before any code of ours runs. SIGQUIT is known all the same: the shell ignores it for a
// background job together with SIGINT.
func ignored() map[syscall.Signal]bool {
	set := map[syscall.Signal]bool{}
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if passed(s) && ignores(s) {
			set[s] = true
		}
	}
	if set[unix.SIGINT] {
		set[unix.SIGQUIT] = true
	}
	return set
}

// ignores asks the kernel: os/signal only knows what went through it.
func ignores(s syscall.Signal) bool {
	var act struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}
	const maskSize = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&act)), maskSize, 0, 0)
	const ignore = 1 // SIG_IGN
	return errno == 0 && act.handler == ignore
}
