package conn

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	// sampleEvery is after how many requests a reader looks whether others wait.
	sampleEvery = 32

	// growAfter and shrinkAfter are how many looks in a row have to find some, or none, until one
	// more or one less is on duty.
	growAfter   = 8
	shrinkAfter = 32
)

// queue is what was seen of requests that wait for a reader. It is guarded by shift.mu.
type queue struct{ full, empty int }

// mostOnDuty is how many readers are worth having: half of the processors, as those who ask need some
// too. With two processors a second reader has been measured to make everything slower.
func mostOnDuty() int32 { return int32(max(1, runtime.GOMAXPROCS(0)/2)) }

// sample looks whether requests wait although this reader has just come for one.
func (c *Conn) sample() {
	waiting := c.requestsWait()
	c.shift.mu.Lock()
	defer c.shift.mu.Unlock()
	want := c.shift.want.Load()
	if want == 1 && !waiting {
		c.queue = queue{}
		return
	}
	c.shift.want.Store(c.queue.next(waiting, want, mostOnDuty()))
	c.fill()
}

// next is how many readers are wanted after a look.
func (q *queue) next(waiting bool, want, most int32) int32 {
	if waiting {
		q.full, q.empty = q.full+1, 0
	} else {
		q.full, q.empty = 0, q.empty+1
	}
	switch {
	case q.full >= growAfter && want < most:
		q.full = 0
		return want + 1
	case q.empty >= shrinkAfter && want > 1:
		q.empty = 0
		return want - 1
	}
	return want
}

func (c *Conn) requestsWait() bool {
	p := [1]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN != 0
}
