package attribution

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const (
	maxPidfds = 4096                   // processes watched by descriptor; more are looked at now and then
	maxWatch  = 65536                  // processes watched at all
	lookAgain = 2 * time.Second        // how often processes without a descriptor are looked at
	grace     = 500 * time.Millisecond // see Watcher
)

// Watcher tells when the last process that was seen carrying a declared tool use is gone.
//
// A process counts from when it was seen until it exits, whatever it executes in between. What
// descends from it and has written nothing is not known, so a tool use is gone only when a short
// grace after the last exit has brought nobody new (a shell can exit before the command that it
// leaves behind writes). A tool use with more processes than can be watched is never said to be gone.
// It is safe for concurrent use.
type Watcher struct {
	gone  func(sessionID, id string)
	log   *slog.Logger
	grace time.Duration
	epoll int
	wake  int // eventfd: there is something new for the loop
	ended chan struct{}

	mu       sync.Mutex // guards all below
	uses     map[useKey]*watched
	empty    map[useKey]*watched // those of uses without a carrier, whose grace runs
	carriers map[session.Process]*carrier
	byFD     map[int]*carrier
	closed   bool
}

type useKey struct{ session, id string }

// watched is a tool use that is watched.
type watched struct {
	carriers map[*carrier]struct{}
	goneAt   time.Time // when the last one exited; counts while it is among the empty
	endless  bool      // it has processes that are not watched
}

// carrier is a living process and what it was seen carrying.
type carrier struct {
	process session.Process
	fd      int // pidfd, -1 where it is looked at now and then
	uses    map[useKey]struct{}
}

// NewWatcher starts a watcher that calls gone, from one goroutine and without a lock held, each
// time that the last process carrying a tool use is gone. It is closed by its maker.
func NewWatcher(gone func(sessionID, id string), log *slog.Logger) (*Watcher, error) {
	return newWatcher(gone, log, grace)
}

func newWatcher(gone func(sessionID, id string), log *slog.Logger, grace time.Duration) (*Watcher, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = poll(epoll, wake)
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("watch processes: %w", err)
	}
	w := &Watcher{
		gone: gone, log: log, grace: grace, epoll: epoll, wake: wake, ended: make(chan struct{}),
		uses: make(map[useKey]*watched), empty: make(map[useKey]*watched), carriers: make(map[session.Process]*carrier), byFD: make(map[int]*carrier),
	}
	go w.loop()
	return w, nil
}

// Seen says that p carries the tool use. A process of pid 0 is nobody and ignored.
func (w *Watcher) Seen(sessionID, id string, p session.Process) {
	if p.PID <= 0 {
		return
	}
	key := useKey{sessionID, id}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	use := w.uses[key]
	if use == nil {
		use = &watched{carriers: make(map[*carrier]struct{}), goneAt: time.Now()}
		w.uses[key], w.empty[key] = use, use
	}
	c := w.carriers[p]
	if c == nil {
		c = w.watch(p, use)
	}
	if c == nil {
		use.goneAt = time.Now()
		w.rouse()
		return
	}
	c.uses[key] = struct{}{}
	use.carriers[c] = struct{}{}
	delete(w.empty, key)
}

// Forget ends watching a tool use, which has ended otherwise. gone is not called for it any more,
// except where that is going on.
func (w *Watcher) Forget(sessionID, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := useKey{sessionID, id}
	use := w.uses[key]
	if use == nil {
		return
	}
	delete(w.uses, key)
	delete(w.empty, key)
	for c := range use.carriers {
		delete(c.uses, key)
		if len(c.uses) == 0 {
			w.release(c)
		}
	}
}

// Close ends watching and returns when no call of gone is going on or will come. It must not be
// called by gone.
func (w *Watcher) Close() {
	w.mu.Lock()
	already := w.closed
	w.closed = true
	w.rouse()
	w.mu.Unlock()
	<-w.ended
	if already {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.carriers {
		w.release(c)
	}
	unix.Close(w.epoll)
	unix.Close(w.wake)
}

// watch makes a carrier for a process that use carries, nil where the process is gone or cannot be watched.
// w.mu is held.
func (w *Watcher) watch(p session.Process, use *watched) *carrier {
	if len(w.carriers) >= maxWatch {
		use.endless = true
		return nil
	}
	c := &carrier{process: p, fd: -1, uses: make(map[useKey]struct{})}
	if len(w.byFD) < maxPidfds {
		c.fd = w.openPidfd(p.PID)
	}
	// Only now: a process that lives with this number after the descriptor was opened is the one
	// that it was opened for.
	if !alive(p) {
		closeFD(c.fd)
		return nil
	}
	w.carriers[p] = c
	if c.fd >= 0 {
		w.byFD[c.fd] = c
	} else {
		w.rouse()
	}
	return c
}

// openPidfd returns a polled descriptor for a process, -1 where none can be had.
func (w *Watcher) openPidfd(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	if err := poll(w.epoll, fd); err != nil {
		w.log.Debug("process is watched without a descriptor", logPID, pid, logError, err)
		unix.Close(fd)
		return -1
	}
	return fd
}

// release forgets a carrier. w.mu is held.
func (w *Watcher) release(c *carrier) {
	delete(w.carriers, c.process)
	if c.fd >= 0 {
		delete(w.byFD, c.fd)
	}
	closeFD(c.fd)
}

// rouse makes the loop look at what is new.
func (w *Watcher) rouse() {
	_, err := unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		w.log.Error("watcher could not be woken", logError, err)
	}
}

// alive reports whether p, and no later process of its number, has not exited. It says so where it
// cannot tell.
func alive(p session.Process) bool {
	now, err := proc.Lookup(p.PID)
	if err != nil {
		return !errors.Is(err, proc.ErrGone)
	}
	return now == p
}

func poll(epoll, fd int) error {
	return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
