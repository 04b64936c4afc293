package conn

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxFailures is how often in a row reading may fail in a way that is not understood.
const maxFailures = 100

var errEnded = errors.New("the connection has ended")

// reader is a thread with its buffers.
type reader struct {
	in, out []byte
	ins     [1][]byte
	outs    [1][]byte

	// state is a number that grows with every request, times two, plus 1 while this is on duty and
	// handles one. Who turns that bit off has to see to a successor.
	state atomic.Uint64

	began atomic.Int64 // when the request on duty began

	wake chan struct{} // tells a parked reader that it is on duty; closed where it may go
}

const handling = 1

func newReader(size int) *reader {
	r := &reader{in: make([]byte, size), out: make([]byte, size), wake: make(chan struct{}, 1)}
	r.outs[0] = r.out
	return r
}

// run is a reader's life. It begins on duty.
func (c *Conn) run(r *reader) {
	defer c.readers.Done()
	// The thread that sleeps in the kernel is the one that goes on, whatever the scheduler has in mind.
	runtime.LockOSThread()
	for {
		n, err := c.receive(r)
		if err != nil {
			c.end(err)
			c.shift.gone(r)
			return
		}
		onDuty := c.carryOut(r, n)
		if (!onDuty || c.shift.surplus()) && !c.shift.stay(r, onDuty) {
			return
		}
	}
}

// receive reads the next request.
func (c *Conn) receive(r *reader) (int, error) {
	for failures := 0; ; {
		n, err := unix.Read(c.fd, r.in)
		switch err {
		case nil:
			if n >= inHeaderSize {
				return n, nil
			}
			if n == 0 {
				return 0, errEnded // not of /dev/fuse, but of a socket
			}
			err = unix.EPROTO
		case unix.EINTR, unix.ENOENT: // ENOENT: the request was given up before it was read
			continue
		case unix.EAGAIN:
			unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1)
			continue
		case unix.ENODEV, unix.ECONNABORTED, unix.EPERM, unix.EBADF:
			return 0, errEnded
		}
		if failures++; failures == maxFailures {
			return 0, err
		}
		time.Sleep(time.Millisecond) // short of memory
	}
}

// carryOut handles the request of n bytes in the reader's buffer, and reports whether the reader is
// still on duty.
func (c *Conn) carryOut(r *reader, n int) bool {
	state := r.state.Load() + 2
	op, unique := header(r.in).Opcode, header(r.in).Unique
	c.served[min(op, maxKinds-1)].Add(1)
	if blocks(op) {
		r.state.Store(state)
		c.handOver()
		c.handle(r, n, unique)
		return false
	}
	now := clock()
	r.began.Store(now)
	r.state.Store(state | handling)
	c.alarm.began(now)
	if state%(2*sampleEvery) == 0 {
		c.sample()
	}
	c.handle(r, n, unique)
	return r.state.CompareAndSwap(state|handling, state)
}

func (c *Conn) handle(r *reader, n int, unique uint64) {
	r.ins[0] = r.in[:n]
	size, status := c.handler.HandleRequest(r.ins[:], r.outs[:])
	if !status.Ok() {
		size = failure(r.out, unique, int32(status))
	}
	if size == 0 {
		return
	}
	if c.reply(r.out[:size]) != nil {
		// It was not understood. The caller must not wait for ever; where it does not, this fails too.
		c.reply(r.out[:failure(r.out, unique, int32(fuse.EIO))])
	}
}

// failure makes out the reply that the request failed, and returns its length.
func failure(out []byte, unique uint64, errno int32) int {
	*outHeader(out) = fuse.OutHeader{Length: uint32(outHeaderSize), Status: -errno, Unique: unique}
	return outHeaderSize
}

// reply writes a reply. That nobody waits for it any more is no error.
func (c *Conn) reply(b []byte) error {
	for {
		_, err := unix.Write(c.fd, b)
		switch err {
		case unix.EINTR, unix.EAGAIN:
			continue
		case unix.ENOENT, unix.ENODEV, unix.EPERM, unix.ECONNABORTED:
			return nil
		}
		return err
	}
}

// end notes that there is nothing more to read, and lets the parked readers go.
func (c *Conn) end(err error) {
	if !c.ended.Swap(true) && err != errEnded {
		c.log.Error("the kernel's requests cannot be read any more", "error", err)
	}
	c.shift.dismiss()
	c.alarm.dismiss()
}
