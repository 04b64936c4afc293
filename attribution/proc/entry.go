package proc

import (
	"sync"
	"sync/atomic"

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
	turn  uint64 // when it was opened, between its directory and its first look

	seen Stat // what the first look saw

	mu        sync.Mutex // guards all up to image
	cgroup    int        // descriptor, -1 where not open
	path      string     // what it said last
	ancestors []Ancestor
	walked    bool
	note      any
	image     image

	adopts func() bool // whether it is the init of a pid namespace, which a process is for life

	// environ is guarded apart, because reading through it can take as long as the process likes.
	environMu sync.Mutex   // taken before mu
	reads     int          // how often it was read
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
	closeFD(k.cgroup)
	closeFD(k.image.alive)
}

// identify finds the process of the thread. Its start time is the process's, which a thread's own
// is not.
func (k *Task) identify() error {
	s, err := k.dir.stat()
	if err != nil {
		return err
	}
	k.Process, k.seen = session.Process{PID: k.tid, Start: s.Start}, s
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
	if path, _ := CutCgroup(b); string(path) != k.path {
		k.path = string(path)
	}
	return k.path, nil
}

// Note returns what SetNote left with the task.
func (k *Task) Note() any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.note
}

// SetNote leaves what was found out about the task's line with it for as long as it is kept. Of a line that
// could not be followed to its end nothing is noted.
func (k *Task) SetNote(v any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.walked {
		k.note = v
	}
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
	if line, known := k.line(); known {
		return line
	}
	line, err := k.table.lineOf(k)
	if err == nil {
		k.setLine(line)
	}
	return line
}

// setLine tells the task its line, where it is not known yet.
func (k *Task) setLine(line []Ancestor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.walked {
		k.ancestors, k.walked = line, true
	}
}

// line returns the task's line where it is known.
func (k *Task) line() (line []Ancestor, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ancestors, k.walked
}
