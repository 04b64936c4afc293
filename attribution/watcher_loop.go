package attribution

import (
	"time"

	"golang.org/x/sys/unix"
)

// loop waits for exits and for graces to end.
func (w *Watcher) loop() {
	defer close(w.ended)
	events := make([]unix.EpollEvent, 64)
	looked := time.Now()
	for {
		n, err := unix.EpollWait(w.epoll, events, w.timeout(looked))
		if err != nil && err != unix.EINTR {
			w.log.Error("processes cannot be watched any more", logError, err)
			return
		}
		if w.take(events[:max(n, 0)]) {
			return
		}
		if time.Since(looked) >= lookAgain {
			looked = time.Now()
			w.lookAgain()
		}
		for _, key := range w.due(time.Now()) {
			w.gone(key.session, key.id)
		}
	}
}

// timeout returns how many milliseconds the loop may sleep, -1 for as long as nothing comes.
func (w *Watcher) timeout(looked time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := time.Duration(-1)
	sooner := func(at time.Time) {
		if d := max(time.Until(at), 0); wait < 0 || d < wait {
			wait = d
		}
	}
	if len(w.carriers) > len(w.byFD) {
		sooner(looked.Add(lookAgain))
	}
	for _, use := range w.empty {
		if !use.endless {
			sooner(use.goneAt.Add(w.grace))
		}
	}
	if wait < 0 {
		return -1
	}
	return int(wait/time.Millisecond) + 1
}

// take notes the exits that were told, and reports whether the watcher is closed.
func (w *Watcher) take(events []unix.EpollEvent) (closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		if int(e.Fd) == w.wake {
			var count [8]byte
			_, _ = unix.Read(w.wake, count[:])
			continue
		}
		if c := w.byFD[int(e.Fd)]; c != nil {
			w.exited(c)
		}
	}
	return w.closed
}

// lookAgain looks at the processes that have no descriptor.
func (w *Watcher) lookAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, c := range w.carriers {
		if c.fd < 0 && !alive(p) {
			w.exited(c)
		}
	}
}

// exited takes a process out of all that it carried. w.mu is held.
func (w *Watcher) exited(c *carrier) {
	w.release(c)
	for key := range c.uses {
		use := w.uses[key]
		delete(use.carriers, c)
		if len(use.carriers) == 0 {
			use.goneAt = time.Now()
			w.empty[key] = use
		}
	}
}

// due takes out the tool uses whose grace has ended.
func (w *Watcher) due(now time.Time) []useKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []useKey
	for key, use := range w.empty {
		if !use.endless && now.Sub(use.goneAt) >= w.grace {
			delete(w.uses, key)
			delete(w.empty, key)
			keys = append(keys, key)
		}
	}
	return keys
}
