package gateway

import (
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// mostConnections bounds the connections that are served at a time. Each costs two descriptors, its own
// and the file's, of those that the whole daemon has; who comes later waits to be accepted.
const mostConnections = 1250

func maxConnections() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 1
	}
	return int(max(1, min(lim.Cur/16, mostConnections)))
}

// limitedListener accepts while there is room.
type limitedListener struct {
	net.Listener
	room   chan struct{} // one element for each connection
	closed chan struct{}
	close  func()
}

func limit(l net.Listener, most int) net.Listener {
	closed := make(chan struct{})
	return &limitedListener{
		Listener: l, room: make(chan struct{}, most), closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

func (l *limitedListener) Close() error {
	l.close()
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
