package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// peer is who is at the other end of a connection, as the kernel says.
type peer struct {
	uid     uint32
	pid     int  // in the daemon's pid namespace; 0 for a process that cannot be seen from there
	foreign bool // in another pid namespace than the daemon's, or gone before it could be looked at
	err     error
}

type peerKey struct{}

func withPeer(ctx context.Context, p peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf looks at a connection once, at accept, while its process most likely waits for an answer.
func peerOf(c net.Conn) peer {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return peer{err: errors.New("not a unix socket")}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return peer{err: err}
	}
	return peer{uid: cred.Uid, pid: int(cred.Pid), foreign: foreign(int(cred.Pid))}
}

// foreign reports whether a process is outside the daemon's pid namespace. A daemon that is not root may
// not read the namespace of another user's process; then the number of its nested pids tells, which
// everybody may read.
func foreign(pid int) bool {
	if pid <= 0 {
		return true
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return true
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if errors.Is(err, fs.ErrPermission) {
		return nesting(strconv.Itoa(pid)) != nesting("self")
	}
	return err != nil || theirs != own
}

// nesting returns how many pid namespaces deep below that of /proc a process is, 0 where it is gone.
func nesting(pid string) int {
	for _, line := range statusLines(pid) {
		if v, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			return len(bytes.Fields(v))
		}
	}
	return 0
}

// statusLines returns the lines of /proc/PID/status. The kernel writes it; the process's name in its
// first line is escaped, so that no line of it can be forged.
func statusLines(pid string) [][]byte {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return nil
	}
	return bytes.Split(b, []byte("\n"))
}

// caller judges the peer of the connection that a request came by.
func (s *Server) caller(ctx context.Context) (session.Caller, error) {
	p, ok := ctx.Value(peerKey{}).(peer)
	switch {
	case !ok:
		return session.Caller{}, fmt.Errorf("%w: the connection has no peer credentials", session.ErrNotAllowed)
	case p.err != nil:
		return session.Caller{}, fmt.Errorf("%w: reading the peer's credentials: %w", session.ErrNotAllowed, p.err)
	case p.foreign && !s.cfg.AllowForeignPIDNamespace:
		return session.Caller{}, fmt.Errorf("%w: the caller is in another pid namespace than vfsd: call from the daemon's, or let the configuration allow it", session.ErrNotAllowed)
	}
	return session.Caller{UID: p.uid, PID: p.pid, Privileged: s.privileged(p.uid)}, nil
}

func (s *Server) privileged(uid uint32) bool { return uid == 0 || uid == s.uid }
