// Package cgroup makes the cgroups that tool uses run in, and removes them when the last process is
// gone.
//
// # Concepts
//
// The cgroup of a tool use lies below the one that its process was in, so that every limit on
// that goes on to hold, and is named by the hash of session and tool use. Membership follows
// everything that descends from the process: env -i, sudo, setsid, double forks. A process that
// leaves its tool use behind stays in the cgroup, which so lives longer than the tool use.
//
// # Guarantees
//
// A cgroup is removed only when it was empty, and Gone is told after. What a daemon that was killed
// left behind is taken over at start: removed where it is empty, else watched.
//
// # Hazards
//
// A process that serves one tool use after another should not be put into cgroups: what it does
// between two of them would be counted to the former. A cgroup in which a program made cgroups of its own
// stays until those are gone.
package cgroup

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

const logPath = "cgroup"

// Groups makes and removes cgroups. It is safe for concurrent use.
type Groups struct {
	log   *slog.Logger
	gone  func(path string)
	mount mount
	root  int      // descriptor of the mounted hierarchy
	watch *os.File // inotify
	fd    int      // its descriptor, which File.Fd would make blocking
	ended chan struct{}

	mu     sync.Mutex // guards all below, and is held from the making of a cgroup until it has its process
	groups map[string]*group
	byWD   map[int]*group
	closed bool
}

// group is a cgroup that is watched.
type group struct {
	path    string          // as in /proc/PID/cgroup
	parent  string          // the same of the one that it was made in
	entered session.Process // whom it was made for; zero where it was taken over
	wd      int             // inotify watch of its cgroup.events
}

// New finds the cgroup v2 hierarchy and takes over what an earlier daemon left there. gone is called, from one
// goroutine and without a lock held, with the path of each cgroup that was removed. Where there is no such hierarchy
// it is ErrUnavailable.
func New(gone func(path string), log *slog.Logger) (*Groups, error) {
	m, root, err := find()
	if err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		unix.Close(root)
		return nil, fmt.Errorf("watch cgroups: %w", err)
	}
	g := &Groups{
		log: log, gone: gone, mount: m, root: root, watch: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		ended: make(chan struct{}), groups: make(map[string]*group), byWD: make(map[int]*group),
	}
	go g.loop(g.takeOver())
	return g, nil
}

// find opens the hierarchy that was mounted last and is not covered.
func find() (mount, int, error) {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mount{}, -1, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer table.Close()
	list, err := hierarchies(table)
	if err != nil {
		return mount{}, -1, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, m := range list {
		if fd, err := m.open(); err == nil {
			return m, fd, nil
		}
	}
	return mount{}, -1, fmt.Errorf("%w: no cgroup2 file system is mounted", ErrUnavailable)
}

// Close ends watching and removes what is empty. What has processes stays, for the next daemon.
func (g *Groups) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.mu.Unlock()
	err := g.watch.Close()
	<-g.ended
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.groups {
		g.tryRemove(c)
	}
	return errors.Join(err, unix.Close(g.root))
}

// openDir opens the cgroup at path. Nothing outside of the hierarchy can be reached.
func (g *Groups) openDir(path string) (int, error) {
	rel, ok := g.mount.relative(path)
	if !ok {
		return -1, fmt.Errorf("%w: %s is not below the mounted hierarchy", ErrUnavailable, path)
	}
	return unix.Openat2(g.root, rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}
