package worktree

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Desc is a file descriptor with several owners. The last one to drop it closes it, so that its
// number cannot come to mean another file while a system call is under way. It is born with one
// owner.
type Desc struct {
	fd   int
	refs atomic.Int32
}

func newDesc(fd int) *Desc {
	held.Add(1)
	d := &Desc{fd: fd}
	d.refs.Store(1)
	return d
}

// FD is the number, valid until the caller's own hold is dropped.
func (d *Desc) FD() int { return d.fd }

// Hold makes the caller a further owner. Somebody's hold has to be sure to last during the call.
func (d *Desc) Hold() *Desc {
	d.refs.Add(1)
	return d
}

// Drop ends one hold. It is fine on nil.
func (d *Desc) Drop() {
	if d != nil && d.refs.Add(-1) == 0 {
		unix.Close(d.fd)
		held.Add(-1)
	}
}
