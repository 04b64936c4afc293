package cgroup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const (
	prefix   = "vfsd-"
	hashLen  = 32 // hex digits
	maxDepth = 32 // levels below which none is made
	eventsIn = "cgroup.events"
	procsIn  = "cgroup.procs"
)

// name returns the name of a tool use's cgroup: ids hold characters that a name cannot.
func name(sessionID, toolUseID string) string {
	sum := sha256.Sum256([]byte(sessionID + "\x00" + toolUseID))
	return prefix + hex.EncodeToString(sum[:])[:hashLen]
}

// ours reports whether a cgroup of that name was made here.
func ours(name string) bool {
	hash, ok := strings.CutPrefix(name, prefix)
	if !ok || len(hash) != hashLen {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// Enter makes a cgroup for the tool use below the one that process pid is in and moves the process
// there, with all its threads; children that it already has stay where they are. The returned path
// is relative to the hierarchy's root, as in /proc/PID/cgroup. A process that Enter had put into a cgroup
// before leaves it for one beside it. Nobody was in the cgroup before: one that exists already is no place for a
// tool use.
//
// Where no cgroup can be made it is ErrUnavailable, where the process is gone session.ErrNotFound.
func (g *Groups) Enter(ctx context.Context, sessionID, toolUseID string, pid int) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	who, err := pin(pid)
	if err != nil {
		return "", err
	}
	defer who.release()
	at, err := proc.Cgroup(who.Process)
	if err != nil {
		return "", fmt.Errorf("enter a cgroup: process %d: %w", pid, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return "", fmt.Errorf("%w: the daemon is stopping", ErrUnavailable)
	}
	parent := at
	if c := g.groups[at]; c != nil && c.entered == who.Process {
		parent = c.parent
	}
	if strings.Count(parent, "/") >= maxDepth {
		return "", fmt.Errorf("%w: %s is nested too deeply", ErrUnavailable, parent)
	}
	return g.enter(parent, name(sessionID, toolUseID), who)
}

// enter is Enter from where the place is known. Another daemon may remove the cgroup as an empty leftover
// before the process is in it: then it is made once more. g.mu is held.
func (g *Groups) enter(parent, name string, who pinned) (string, error) {
	c := &group{path: path.Join(parent, name), parent: parent, entered: who.Process}
	err := g.make(c, name, who)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) {
		g.discard(c)
		err = g.make(c, name, who)
	}
	switch {
	case err == nil:
		return c.path, nil
	case !errors.Is(err, unix.EEXIST):
		g.discard(c)
	}
	return "", explain(c.path, err)
}

// discard takes back what make left behind. g.mu is held.
func (g *Groups) discard(c *group) {
	if g.tryRemove(c) {
		g.unfollow(c)
	}
}

// make watches the cgroup before the process is in it, so that its end is not missed. One that exists is left
// alone (EEXIST): who is in it would be counted to the tool use. g.mu is held.
func (g *Groups) make(c *group, name string, who pinned) error {
	dir, err := g.openDir(c.parent)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := unix.Mkdirat(dir, name, 0o755); err != nil {
		return err
	}
	if err := g.follow(c); err != nil {
		return err
	}
	if err := writeAt(dir, name+"/"+procsIn, strconv.Itoa(who.PID)); err != nil {
		return err
	}
	if !who.lives() {
		// Its number may have been another's at the time of the write.
		g.moveBack(dir, name)
		return unix.ESRCH
	}
	return nil
}

// moveBack moves what is in the cgroup name of the directory dir to the one above.
func (g *Groups) moveBack(dir int, name string) {
	b, err := readAt(dir, name+"/"+procsIn)
	if err != nil {
		return
	}
	for _, pid := range strings.Fields(b) {
		if err := writeAt(dir, procsIn, pid); err != nil && err != unix.ESRCH {
			g.log.Warn("process could not be moved back", "pid", pid, "err", err)
		}
	}
}

// explain says what an error of the kernel means for somebody who wants a cgroup.
func explain(path string, err error) error {
	why := ""
	switch {
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("enter cgroup %s: %w: the process is gone", path, session.ErrNotFound)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		why = "the daemon may not change it: run it as root, or delegate the cgroup to its user"
	case errors.Is(err, unix.EEXIST):
		why = "there is one of that name already, with others in it"
	case errors.Is(err, unix.EROFS):
		why = "the hierarchy is mounted read-only"
	case errors.Is(err, unix.EOPNOTSUPP):
		why = "it is in a threaded domain"
	case errors.Is(err, unix.EBUSY):
		why = "controllers are enabled where processes are"
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOSPC):
		why = "a limit on the number or depth of cgroups is reached"
	default:
		why = "the kernel refuses it"
	}
	return fmt.Errorf("enter cgroup %s: %w: %s: %w", path, ErrUnavailable, why, err)
}

// pinned is a process whose end can be told.
type pinned struct {
	session.Process
	fd int
}

// pin takes hold of a process. Its number may go to another one after, but lives tells.
func pin(pid int) (pinned, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return pinned{}, fmt.Errorf("enter a cgroup: %w: no process %d: %w", session.ErrNotFound, pid, err)
	}
	p, err := proc.Lookup(pid)
	who := pinned{Process: p, fd: fd}
	if err == nil && !who.lives() {
		err = proc.ErrGone
	}
	if err != nil {
		who.release()
		return pinned{}, fmt.Errorf("enter a cgroup: %w: process %d: %w", session.ErrNotFound, pid, err)
	}
	return who, nil
}

func (p pinned) release() { unix.Close(p.fd) }

func (p pinned) lives() bool { return unix.PidfdSendSignal(p.fd, 0, nil, 0) != unix.ESRCH }

// writeAt writes s to an existing file below dir, in one call as cgroup files want it.
func writeAt(dir int, name, s string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(s))
	return err
}

const readLimit = 64 << 10

func readAt(dir int, name string) (string, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, readLimit)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
