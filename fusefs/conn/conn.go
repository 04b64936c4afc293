package conn

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// headroom is what a request or reply has beside its data: headers, names, the fixed part.
	headroom = 4 << 10

	// maxReaders bounds the readers, on duty or not, and with them what stuck handlers hold.
	maxReaders = 256

	// maxParked bounds those that wait for work.
	maxParked = 4
)

// Handler carries out a request: it decodes in and encodes the reply into out, and returns the
// reply's length, 0 where the request wants none. *fuse.ProtocolServer is one.
type Handler interface {
	HandleRequest(in, out [][]byte) (int, fuse.Status)
}

// Conn is the connection of one mount. Its methods are safe for concurrent use, but Serve, which is
// called once.
type Conn struct {
	handler Handler
	log     *slog.Logger
	size    int // of a buffer
	terms   fuse.InitOut

	gate   sync.RWMutex // held for reading while fd is used by who is no reader
	fd     int
	closed bool

	shift   shift
	alarm   alarm
	queue   queue // guarded by shift.mu
	readers sync.WaitGroup
	ended   atomic.Bool // the kernel has ended the connection
	served  [maxKinds]atomic.Uint64
}

// New agrees on the terms of the connection that fd, which becomes its own, was mounted with:
// it has handler answer the kernel's first request. maxWrite is the largest write or read that
// handler is going to agree on.
func New(fd int, handler Handler, maxWrite int, log *slog.Logger) (*Conn, error) {
	c := &Conn{handler: handler, log: log, size: max(maxWrite, fuse.MAX_KERNEL_WRITE/8) + headroom, fd: fd}
	c.shift.init()
	if err := c.alarm.init(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	if err := c.agree(); err != nil {
		unix.Close(c.alarm.fd)
		unix.Close(fd)
		return nil, err
	}
	return c, nil
}

// agree answers INIT, which comes before everything else.
func (c *Conn) agree() error {
	r := newReader(c.size)
	n, err := c.receive(r)
	if err != nil {
		return fmt.Errorf("first request: %w", err)
	}
	in := header(r.in)
	if in.Opcode != opInit {
		return fmt.Errorf("first request is of kind %d", in.Opcode)
	}
	size, status := c.handler.HandleRequest([][]byte{r.in[:n]}, [][]byte{r.out})
	if !status.Ok() || size < outHeaderSize {
		return fmt.Errorf("the kernel's terms: %w", unix.EPROTO)
	}
	if status := outHeader(r.out).Status; status != 0 {
		c.reply(r.out[:size])
		return fmt.Errorf("the kernel's terms: %w", unix.Errno(-status))
	}
	copy(bytesOf(&c.terms), r.out[outHeaderSize:size])
	return c.reply(r.out[:size])
}

// Terms is what was agreed on: the flags are those that both sides know.
func (c *Conn) Terms() fuse.InitOut { return c.terms }

// Served is how many requests of each kind, FUSE_LOOKUP and so on, there were.
func (c *Conn) Served() map[uint32]uint64 {
	out := map[uint32]uint64{}
	for kind := range c.served {
		if n := c.served[kind].Load(); n > 0 {
			out[uint32(kind)] = n
		}
	}
	return out
}

// Serve handles requests until the kernel ends the connection, by an unmount or an abort, and the
// last handler is done. Then it closes the descriptor.
func (c *Conn) Serve() {
	c.readers.Add(1) // the watch
	go c.keepWatch()
	c.staff(1)
	c.readers.Wait()
	c.gate.Lock()
	defer c.gate.Unlock()
	c.closed = true
	unix.Close(c.alarm.fd)
	unix.Close(c.fd)
}
