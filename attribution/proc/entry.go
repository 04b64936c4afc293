package proc

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// Task is a thread or process of a Table.
type Task struct {
	// Process is the process that the thread belongs to.
	Process session.Process

	table *Table
	refs  int // guarded by table.mu
	tid   int
	dir   dir

	mu        sync.Mutex // guards the next three
	cgroup    int        // descriptor, -1 where not open
	ancestors []Ancestor
	walked    bool

	adopts func() bool // whether it is the init of a pid namespace, which a process is for life

	// environ is guarded apart, because reading through it can take as long as the process likes.
	environMu sync.Mutex   // taken before mu
	environ   int          // descriptor, -1 where not open
	since     atomic.Int64 // when the read that is going on began, nanoseconds; 0 for none
}

// Retain adds a holder, who releases the task too.
func (k *Task) Retain() {
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	k.refs++
}

// Release gives the task back: it must not be used by this holder after.
func (k *Task) Release() {
	k.table.mu.Lock()
	defer k.table.mu.Unlock()
	k.table.unref(k)
}

func (k *Task) closeAll() {
	k.dir.close()
	for _, fd := range []int{k.cgroup, k.environ} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// identify finds the process of the thread. Its start time is the process's, which a thread's own
// is not.
func (k *Task) identify() error {
	s, err := k.dir.stat()
	if err != nil {
		return err
	}
	k.Process = session.Process{PID: k.tid, Start: s.Start}
	if s.ExitSignal >= 0 {
		return nil
	}
	b, err := k.dir.read("status", statusLimit)
	if err != nil {
		return err
	}
	tgid, _, err := ParseStatus(b)
	if err != nil || tgid == k.tid {
		return err
	}
	k.Process, err = Lookup(tgid)
	return err
}

// Cgroup returns the path of the task's cgroup v2 as it is now, "" where it has none.
func (k *Task) Cgroup() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cgroup < 0 {
		fd, err := k.dir.open("cgroup")
		if err != nil {
			return "", err
		}
		k.cgroup = fd
	}
	var buf [512]byte
	b, err := readAt(k.cgroup, buf[:])
	if err == nil && len(b) == len(buf) {
		b, err = readAt(k.cgroup, make([]byte, cgroupLimit))
	}
	if err != nil {
		return "", err
	}
	path, _ := ParseCgroup(b)
	return path, nil
}

// Adopts reports whether the process is the init of a pid namespace, so that whoever hangs on it may
// be an orphan of another line. It says so where it cannot tell.
func (k *Task) Adopts() bool { return k.adopts() }

func (k *Task) isInit() bool {
	b, err := k.dir.read("status", statusLimit)
	if err != nil {
		return true
	}
	_, ns, err := ParseStatus(b)
	return err != nil || ns[len(ns)-1] == 1
}

// Ancestors returns the line of the task's process, its parent first, as far as it can be followed.
// The list is shared and must not be changed.
func (k *Task) Ancestors() []Ancestor {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.walked {
		return k.ancestors
	}
	list, err := walk(k.dir)
	if err == nil {
		k.ancestors, k.walked = list, true
	}
	return list
}
