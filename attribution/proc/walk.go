package proc

import (
	"errors"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

const (
	maxDepth    = 64 // ancestors looked at
	maxAttempts = 4  // walks begun again because an ancestor exited under them
)

// errMoved says that a parent was replaced while it was looked at.
var errMoved = errors.New("parent was replaced")

// Ancestor is a process on a caller's line.
type Ancestor struct{ session.Process }

// lineOf returns the ancestors of a task's process, the nearest first, as far as they can be followed:
// up to one whose own line is known, which they share. With an error the list may lack what would come after.
func (t *Table) lineOf(k *Task) ([]Ancestor, error) {
	var passed []*Task
	defer func() {
		for _, p := range passed {
			p.Release()
		}
	}()
	var list, rest []Ancestor
	top := false // the line is followed to its end
	for at := k; len(list) < maxDepth; {
		if rest, top = at.line(); top {
			break
		}
		up, err := t.parentOf(at)
		if err != nil {
			return list, err
		}
		if top = up == nil; top {
			break
		}
		passed, list, at = append(passed, up), append(list, Ancestor{up.Process}), up
	}
	list = append(list, rest...)
	list = list[:min(len(list), maxDepth)]
	if top && len(list) < maxDepth {
		for i, p := range passed {
			p.setLine(list[i+1:])
		}
	}
	return list, nil
}

// parentOf returns the parent of a task's process, nil for none. The caller releases it.
func (t *Table) parentOf(k *Task) (*Task, error) {
	below := k.seen
	err := errMoved
	for range maxAttempts {
		if below.PPID <= 0 {
			return nil, nil
		}
		var up *Task
		if up, err = t.keptParent(k, below); up != nil || err != nil && !errors.Is(err, errMoved) {
			return up, err
		}
		if up, err = t.openParent(k, below); up != nil || !errors.Is(err, errMoved) {
			return up, err
		}
		if below, err = k.dir.stat(); err != nil {
			return nil, err
		}
		err = errMoved
	}
	return nil, err
}

// keptParent returns the parent of k, which was seen as below, where it is kept. It is the parent where it
// was there before the link was read and is there after, under that number then.
func (t *Table) keptParent(k *Task, below Stat) (*Task, error) {
	up := t.cached(below.PPID)
	if up == nil {
		return nil, nil
	}
	link := below
	var err error
	if up.turn >= k.turn || below != k.seen {
		link, err = k.dir.stat()
	}
	if err == nil && (link.PPID != up.Process.PID || up.Process.Start > link.Start) {
		err = errMoved
	}
	if err == nil {
		if _, gone := up.Cgroup(); gone == nil {
			return up, nil
		}
		t.drop(up)
	}
	up.Release()
	return nil, moved(err)
}

// openParent opens the parent of k, which was seen as below, so that it is certain to be it.
func (t *Table) openParent(k *Task, below Stat) (*Task, error) {
	up, err := t.open(below.PPID)
	if err != nil {
		return nil, moved(err)
	}
	again, err := k.dir.stat()
	if err == nil && (again.PPID != below.PPID || again.Start != below.Start || up.Process.Start > below.Start || up.Process.PID != below.PPID) {
		err = errMoved
	}
	if err != nil {
		up.Release()
		return nil, moved(err)
	}
	t.keep(up)
	return up, nil
}

func moved(err error) error {
	if errors.Is(err, ErrGone) {
		return errMoved
	}
	return err
}

// sharesMemory reports whether two processes have the same memory: a child between vfork and exec
// has its parent's. It says so where it cannot tell.
func sharesMemory(a, b int) bool {
	const kcmpVM = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno != 0 || order == 0
}
