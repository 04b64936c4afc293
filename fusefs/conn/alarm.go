package conn

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// slow is what a request may take until somebody else goes on duty.
	slow = time.Millisecond

	// rearm is how old a set alarm gets until it is put off.
	rearm = slow / 2
)

// alarm goes off where nobody on duty has begun a request for a while. It is a timer of the kernel
// with a thread that waits for it, as a timer of the Go runtime, or anything else that its scheduler
// has to do every millisecond, makes every request slower by half. Under traffic it is put off
// before it ever goes off; without traffic it goes off once.
type alarm struct {
	fd  int
	set atomic.Int64 // when it was set last
}

func (a *alarm) init() (err error) {
	a.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	return err
}

// began is called at the beginning of every request that is handled on duty.
func (a *alarm) began(now int64) {
	if now-a.set.Load() > int64(rearm) {
		a.putOff(now, slow)
	}
}

func (a *alarm) putOff(now int64, d time.Duration) {
	a.set.Store(now)
	unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

// wait returns when it has gone off.
func (a *alarm) wait() {
	var count [8]byte
	for {
		if _, err := unix.Read(a.fd, count[:]); err != unix.EINTR {
			return
		}
	}
}

// keepWatch takes readers off duty whose request takes long.
func (c *Conn) keepWatch() {
	defer c.readers.Done()
	for {
		c.alarm.wait()
		if c.ended.Load() {
			return
		}
		if c.relieve(clock()) {
			c.alarm.putOff(clock(), slow)
		}
	}
}

// relieve takes readers off duty whose request takes long, and reports whether others are at one that
// does not yet.
func (c *Conn) relieve(now int64) bool {
	c.shift.mu.Lock()
	defer c.shift.mu.Unlock()
	busy := false
	for r := range c.shift.all {
		state := r.state.Load()
		switch {
		case state&handling == 0:
		case now-r.began.Load() < int64(rearm):
			busy = true
		case r.state.CompareAndSwap(state, state&^handling):
			c.shift.onDuty.Add(-1)
		}
	}
	c.fill()
	return busy
}

// dismiss ends the watch: the alarm goes off at once.
func (a *alarm) dismiss() { a.putOff(0, 1) }

var epoch = time.Now()

func clock() int64 { return int64(time.Since(epoch)) }
