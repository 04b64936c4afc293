package server

import (
	"net"
	"sync"
)

// The connections that users without privilege may have at a time, one of them and all together. The
// socket is everybody's, and each connection costs one of the descriptors that mounts live on too.
const (
	maxStranger  = 64
	maxStrangers = 512
)

// crowd counts the connections of strangers.
type crowd struct {
	mu    sync.Mutex // guards all below
	all   int
	ofUID map[uint32]int
}

// admit reports whether there is room for one more of the user's.
func (c *crowd) admit(uid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= maxStrangers || c.ofUID[uid] >= maxStranger {
		return false
	}
	c.all++
	c.ofUID[uid]++
	return true
}

func (c *crowd) leave(uid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.ofUID[uid]--; c.ofUID[uid] == 0 {
		delete(c.ofUID, uid)
	}
}

// guardedListener closes connections that are too many before anything is read from them.
type guardedListener struct {
	net.Listener
	crowd      crowd
	privileged func(peer) bool
}

func (s *Server) guard(l net.Listener) net.Listener {
	return &guardedListener{
		Listener: l, crowd: crowd{ofUID: map[uint32]int{}},
		privileged: func(p peer) bool { return p.err == nil && s.privileged(p.uid) },
	}
}

func (l *guardedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := peerOf(c)
		if l.privileged(p) {
			return &peerConn{Conn: c, peer: p}, nil
		}
		if l.crowd.admit(p.uid) {
			return &peerConn{Conn: c, peer: p, leave: sync.OnceFunc(func() { l.crowd.leave(p.uid) })}, nil
		}
		c.Close()
	}
}

// peerConn is a connection whose peer was looked at.
type peerConn struct {
	net.Conn
	peer  peer
	leave func() // nil where it is not counted
}

func (c *peerConn) Close() error {
	if c.leave != nil {
		c.leave()
	}
	return c.Conn.Close()
}
