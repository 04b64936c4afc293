package conn

import (
	"sync"
	"sync/atomic"
)

// shift is who reads.
type shift struct {
	want   atomic.Int32 // how many are to be on duty
	onDuty atomic.Int32 // how many are; changed under mu

	mu     sync.Mutex // guards all below
	all    map[*reader]bool
	parked []*reader // the last is the one that parked last: its memory is still warm
	over   bool      // the connection has ended
}

func (s *shift) init() { s.all = map[*reader]bool{} }

// surplus reports whether one that is on duty may leave.
func (s *shift) surplus() bool { return s.onDuty.Load() > s.want.Load() }

// handOver takes one off duty and sees to a successor.
func (c *Conn) handOver() {
	c.shift.mu.Lock()
	defer c.shift.mu.Unlock()
	c.shift.onDuty.Add(-1)
	c.fill()
}

// staff sets how many are to be on duty.
func (c *Conn) staff(want int32) {
	c.shift.mu.Lock()
	defer c.shift.mu.Unlock()
	c.shift.want.Store(want)
	c.fill()
}

// fill puts readers on duty where some are missing: parked ones, or new ones as far as the bound
// allows. shift.mu is held, and somebody is counted in readers.
func (c *Conn) fill() {
	s := &c.shift
	for !s.over && s.onDuty.Load() < s.want.Load() {
		if last := len(s.parked) - 1; last >= 0 {
			s.parked[last].wake <- struct{}{}
			s.parked = s.parked[:last]
		} else if len(s.all) < maxReaders {
			r := newReader(c.size)
			s.all[r] = true
			c.readers.Add(1)
			go c.run(r)
		} else {
			return // who finishes next goes on duty
		}
		s.onDuty.Add(1)
	}
}

// stay is called by a reader between requests that is off duty, or may leave. It parks where it is
// not needed. What it returns is whether the reader is on duty then; otherwise it ends.
func (s *shift) stay(r *reader, onDuty bool) bool {
	s.mu.Lock()
	if onDuty && !s.surplus() || !onDuty && !s.over && s.onDuty.Load() < s.want.Load() {
		if !onDuty {
			s.onDuty.Add(1)
		}
		s.mu.Unlock()
		return true
	}
	if onDuty {
		s.onDuty.Add(-1)
	}
	if s.over || len(s.parked) >= maxParked {
		delete(s.all, r)
		s.mu.Unlock()
		return false
	}
	s.parked = append(s.parked, r)
	s.mu.Unlock()
	_, onDuty = <-r.wake
	return onDuty
}

// gone removes a reader that is on duty.
func (s *shift) gone(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onDuty.Add(-1)
	delete(s.all, r)
}

// dismiss lets the parked readers go, and those that finish later.
func (s *shift) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, r := range s.parked {
		delete(s.all, r)
		close(r.wake)
	}
	s.parked = nil
}
