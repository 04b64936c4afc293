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

// walk returns the ancestors of the process whose directory is d, the nearest first, as far as they
// can be followed. With an error the list may lack what would come after.
func walk(d dir) (list []Ancestor, err error) {
	for range maxAttempts {
		list, err = climb(d)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return list, err
}

// climb does one walk. It is errMoved where an ancestor exited under it.
func climb(child dir) ([]Ancestor, error) {
	var list []Ancestor
	below, err := child.stat()
	if err != nil {
		return nil, err
	}
	first := child
	for len(list) < maxDepth && below.PPID > 0 {
		parent, s, err := openParent(child, below)
		if err == nil {
			list = append(list, Ancestor{session.Process{PID: s.PID, Start: s.Start}})
		}
		if child != first {
			child.close()
		}
		if err != nil {
			return list, err
		}
		child, below = parent, s
	}
	if child != first {
		child.close()
	}
	return list, nil
}

// openParent opens the parent of child, which was seen as below, so that it is certain to be it.
func openParent(child dir, below Stat) (dir, Stat, error) {
	parent, err := openDir(below.PPID)
	if err != nil {
		return -1, Stat{}, moved(err)
	}
	s, err := parent.stat()
	if err == nil {
		var again Stat
		again, err = child.stat()
		if err == nil && (again.PPID != below.PPID || again.Start != below.Start || s.Start > below.Start || s.PID != below.PPID) {
			err = errMoved
		}
	}
	if err != nil {
		parent.close()
		return -1, Stat{}, moved(err)
	}
	return parent, s, nil
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
