package conn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tick is how often the watch looks. A handler that is met twice at the same request is slow.
	tick = time.Millisecond

	// quiet is after how many ticks without a request the watch sleeps.
	quiet = 100

	// growAfter and shrinkAfter are for how many ticks in a row requests have to wait, or not to,
	// until one more or one less is on duty.
	growAfter   = 4
	shrinkAfter = 50
)

// watch looks after the readers while there is traffic.
type watch struct {
	awake atomic.Bool
	wake  chan struct{}
	over  chan struct{}
	end   sync.Once

	waiting, calm int // ticks in a row at which requests waited or not
}

func (w *watch) init() {
	w.wake, w.over = make(chan struct{}, 1), make(chan struct{})
}

// noticed is called at the beginning of every request that is handled on duty.
func (w *watch) noticed() {
	if !w.awake.Load() && w.awake.CompareAndSwap(false, true) {
		w.wake <- struct{}{}
	}
}

func (w *watch) dismiss() { w.end.Do(func() { close(w.over) }) }

func (c *Conn) keepWatch() {
	defer c.readers.Done()
	for {
		select {
		case <-c.watch.wake:
		case <-c.watch.over:
			return
		}
		if !c.watchTraffic() {
			return
		}
	}
}

// watchTraffic looks at every tick until there has been no traffic for a while. It returns false
// where the connection ended.
func (c *Conn) watchTraffic() bool {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for idle := 0; ; {
		select {
		case <-ticks.C:
		case <-c.watch.over:
			return false
		}
		if c.look() {
			idle = 0
			continue
		}
		if idle++; idle < quiet {
			continue
		}
		c.watch.awake.Store(false)
		// A request may have come before that was seen.
		if !c.look() || !c.watch.awake.CompareAndSwap(false, true) {
			return true
		}
		idle = 0
	}
}

// look takes readers off duty that are at the same request as at the last look, and reports whether
// there was any traffic since.
func (c *Conn) look() bool {
	c.shift.mu.Lock()
	defer c.shift.mu.Unlock()
	traffic := false
	for r := range c.shift.all {
		state := r.state.Load()
		switch {
		case state != r.seen:
			r.seen, traffic = state, true
		case state&handling != 0 && r.state.CompareAndSwap(state, state&^handling):
			c.shift.onDuty.Add(-1)
			r.seen = state &^ handling
		}
	}
	c.measure()
	c.fill()
	return traffic
}

// measure looks whether requests wait for a reader, and changes how many are to be on duty where
// that is so, or not so, for some time. shift.mu is held.
func (c *Conn) measure() {
	w, want := &c.watch, c.shift.want.Load()
	if c.requestsWait() {
		w.waiting, w.calm = w.waiting+1, 0
	} else {
		w.waiting, w.calm = 0, w.calm+1
	}
	if w.waiting >= growAfter && int(want) < runtime.GOMAXPROCS(0) {
		c.shift.want.Store(want + 1)
		w.waiting = 0
	}
	if w.calm >= shrinkAfter && want > 1 {
		c.shift.want.Store(want - 1)
		w.calm = 0
	}
}

func (c *Conn) requestsWait() bool {
	p := [1]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN != 0
}
