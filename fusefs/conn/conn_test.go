package conn

import (
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const patience = 20 * time.Second

const (
	opForget  = 2
	opGetattr = 3
)

// kernel plays the kernel's part at the other end of a socket.
type kernel struct {
	t    *testing.T
	fd   int
	conn *Conn
	done chan struct{}
}

// handlerFunc answers a request by its header: whether it wants a reply, and its status.
type handlerFunc func(in *fuse.InHeader) (reply bool, status fuse.Status)

func (h handlerFunc) HandleRequest(in, out [][]byte) (int, fuse.Status) {
	head := header(in[0])
	if head.Opcode == opInit {
		*outHeader(out[0]) = fuse.OutHeader{Length: uint32(outHeaderSize), Unique: head.Unique}
		return outHeaderSize, fuse.OK
	}
	reply, status := h(head)
	if !reply {
		return 0, status
	}
	*outHeader(out[0]) = fuse.OutHeader{Length: uint32(outHeaderSize), Unique: head.Unique}
	return outHeaderSize, status
}

func play(t *testing.T, h handlerFunc) *kernel {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	k := &kernel{t: t, fd: pair[0], done: make(chan struct{})}
	require.NoError(t, unix.SetsockoptTimeval(k.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}))
	k.send(opInit, 1)
	k.conn, err = New(pair[1], h, 128<<10, slog.Default())
	require.NoError(t, err)
	require.Equal(t, fuse.OutHeader{Length: uint32(outHeaderSize), Unique: 1}, k.receive())
	go func() {
		defer close(k.done)
		k.conn.Serve()
	}()
	t.Cleanup(k.end)
	return k
}

// end closes the connection and waits until nothing is left of it.
func (k *kernel) end() {
	unix.Shutdown(k.fd, unix.SHUT_RDWR)
	select {
	case <-k.done:
	case <-time.After(patience):
		k.t.Fatal("the connection does not end")
	}
	unix.Close(k.fd)
	require.Zero(k.t, k.conn.shift.onDuty.Load())
	require.Empty(k.t, k.conn.shift.all)
}

func (k *kernel) send(op uint32, unique uint64) {
	h := fuse.InHeader{Length: uint32(inHeaderSize), Opcode: op, Unique: unique}
	_, err := again(func() (int, error) { return unix.Write(k.fd, bytesOf(&h)) })
	require.NoError(k.t, err)
}

func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

func (k *kernel) receive() fuse.OutHeader {
	k.t.Helper()
	var h fuse.OutHeader
	n, err := again(func() (int, error) { return unix.Read(k.fd, bytesOf(&h)) })
	require.NoError(k.t, err, "no answer")
	require.Equal(k.t, outHeaderSize, n)
	return h
}

func (k *kernel) ask(op uint32, unique uint64) {
	k.t.Helper()
	k.send(op, unique)
	require.Equal(k.t, unique, k.receive().Unique)
}

func (k *kernel) readers() (all, parked int) {
	k.conn.shift.mu.Lock()
	defer k.conn.shift.mu.Unlock()
	return len(k.conn.shift.all), len(k.conn.shift.parked)
}

// stuck is a handler that is stuck at some requests until it is let go.
type stuck struct {
	reached chan uint64
	free    chan struct{}
	once    sync.Once
	at      func(*fuse.InHeader) bool
}

func newStuck(at func(*fuse.InHeader) bool) *stuck {
	return &stuck{reached: make(chan uint64, 2*maxReaders), free: make(chan struct{}), at: at}
}

func (s *stuck) release() { s.once.Do(func() { close(s.free) }) }

func (s *stuck) handle(in *fuse.InHeader) (bool, fuse.Status) {
	if s.at(in) {
		s.reached <- in.Unique
		<-s.free
	}
	return true, fuse.OK
}

func onProcessors(t *testing.T, test func(t *testing.T)) {
	for name, n := range map[string]int{"one processor": 1, "four processors": 4} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			test(t)
		})
	}
}

func TestAnswers(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		k := play(t, func(in *fuse.InHeader) (bool, fuse.Status) { return true, fuse.OK })
		for i := range uint64(20_000) {
			k.ask(opGetattr, i+2)
		}
		all, _ := k.readers()
		require.LessOrEqual(t, all, 3)
	})
}

func TestHandsOverBeforeItBlocks(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		s := newStuck(func(in *fuse.InHeader) bool { return blocks(in.Opcode) })
		k := play(t, s.handle)
		defer s.release()
		for _, op := range []uint32{opFsync, opFsyncDir, opFallocate, opCopyFileRange, opSetLkw} {
			k.send(op, uint64(100+op))
			require.Equal(t, uint64(100+op), <-s.reached)
			k.ask(opGetattr, 2)
		}
		s.release()
		for range 5 {
			require.Greater(t, k.receive().Unique, uint64(100))
		}
		k.ask(opGetattr, 3)
	})
}

func TestStuckHandlersDoNotStopOthers(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		s := newStuck(func(in *fuse.InHeader) bool { return in.Unique >= 1000 })
		k := play(t, s.handle)
		defer s.release()
		for i := range uint64(50) {
			k.send(opGetattr, 1000+i)
			<-s.reached
			k.ask(opGetattr, 2+i)
		}
		s.release()
		for range 50 {
			require.GreaterOrEqual(t, k.receive().Unique, uint64(1000))
		}
		for i := uint64(0); ; i++ { // the superfluous ones leave
			k.ask(opGetattr, 100+i)
			if all, parked := k.readers(); all <= maxParked+2 {
				require.LessOrEqual(t, parked, maxParked)
				return
			}
		}
	})
}

func TestReadersAreBounded(t *testing.T) {
	s := newStuck(func(in *fuse.InHeader) bool { return in.Opcode == opFsync })
	k := play(t, s.handle)
	defer s.release()
	for i := range uint64(maxReaders) {
		k.send(opFsync, 1000+i)
		<-s.reached
	}
	k.send(opGetattr, 2)
	all, _ := k.readers()
	require.Equal(t, maxReaders, all)
	s.release()
	answered := map[uint64]bool{}
	for range maxReaders + 1 {
		answered[k.receive().Unique] = true
	}
	require.True(t, answered[2], "who comes free goes on duty")
	k.ask(opGetattr, 3)
}

func TestEndWithStuckHandlers(t *testing.T) {
	s := newStuck(func(in *fuse.InHeader) bool { return true })
	k := play(t, s.handle)
	k.send(opFsync, 2)
	k.send(opGetattr, 3)
	<-s.reached
	<-s.reached
	require.NoError(t, unix.Shutdown(k.fd, unix.SHUT_WR))
	select {
	case <-k.done:
		t.Fatal("it ended before its handlers")
	default:
	}
	s.release()
	<-k.done
	require.ErrorIs(t, k.conn.InvalidateAttr(1), unix.ENODEV)
	_, err := k.conn.Back(0)
	require.ErrorIs(t, err, unix.ENODEV)
}

func TestForgetStorm(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		var forgotten atomic.Int64
		k := play(t, func(in *fuse.InHeader) (bool, fuse.Status) {
			if in.Opcode == opForget {
				forgotten.Add(1)
			}
			return in.Opcode != opForget, fuse.OK
		})
		for range 20_000 {
			k.send(opForget, 0)
		}
		k.ask(opGetattr, 2)
		all, _ := k.readers()
		require.LessOrEqual(t, all, 2*runtime.GOMAXPROCS(0)+maxParked)
		require.Eventually(t, func() bool { return forgotten.Load() == 20_000 }, patience, time.Millisecond)
	})
}

func TestFailuresAreAnswered(t *testing.T) {
	k := play(t, func(in *fuse.InHeader) (bool, fuse.Status) { return false, fuse.EIO })
	k.send(opGetattr, 2)
	require.Equal(t, fuse.OutHeader{Length: uint32(outHeaderSize), Status: -int32(fuse.EIO), Unique: 2}, k.receive())
}

func TestGrowsAndShrinks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	k := play(t, func(in *fuse.InHeader) (bool, fuse.Status) { return in.Opcode != opForget, fuse.OK })
	storms := 0
	for ; k.conn.shift.want.Load() == 1; storms++ {
		require.Less(t, storms, 10_000, "it does not grow")
		for range 100 {
			k.send(opForget, 0)
		}
	}
	deadline := time.Now().Add(patience)
	for i := uint64(2); k.conn.shift.want.Load() > 1 || k.conn.shift.onDuty.Load() > 1; i++ {
		require.True(t, time.Now().Before(deadline), "it does not shrink")
		k.ask(opGetattr, i)
	}
	k.ask(opGetattr, 2)
}

func TestQueue(t *testing.T) {
	var q queue
	look := func(waiting bool, times int, want, most int32) int32 {
		for range times {
			want = q.next(waiting, want, most)
		}
		return want
	}
	require.EqualValues(t, 1, look(true, growAfter-1, 1, 4))
	require.EqualValues(t, 1, look(false, 1, 1, 4), "not in a row")
	require.EqualValues(t, 1, look(true, growAfter-1, 1, 4))
	require.EqualValues(t, 2, look(true, 1, 1, 4))
	require.EqualValues(t, 4, look(true, 10*growAfter, 2, 4))
	require.EqualValues(t, 4, look(false, shrinkAfter-1, 4, 4))
	require.EqualValues(t, 3, look(false, 1, 4, 4))
	require.EqualValues(t, 1, look(false, 10*shrinkAfter, 3, 4))
}
