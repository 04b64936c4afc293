package proc

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStuck says that an earlier read of the same environment has not come back for long.
var ErrStuck = errors.New("reading the environment is stuck")

const stuckAfter = 50 * time.Millisecond

// image is what was made of an environment, and how to tell that the process still executes the program
// that it was given to.
type image struct {
	alive int // descriptor, see lives
	said  any
}

// Kept returns what the last Environ made of the environment where the task executes the same program
// as then. It never blocks.
//
// What a program later writes over its environment is not seen so: who it was started by does not change.
func (k *Task) Kept() (said any, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.image.alive < 0 {
		return nil, false
	}
	if !lives(k.image.alive) {
		k.dropImage()
		return nil, false
	}
	return k.image.said, true
}

// Environ reads the environment of the task as it was at its exec into buf and returns what parse
// makes of it. cut says that there was more, or that the process cannot be asked: it has exited, or is
// in the middle of an exec. What was parsed is kept from the second time on: most processes write one file.
// It can block for as long as the process likes.
func (k *Task) Environ(buf []byte, parse func(env []byte, cut bool) any) (any, error) {
	if began := k.since.Load(); began != 0 && time.Now().UnixNano()-began > int64(stuckAfter) {
		return nil, ErrStuck
	}
	k.environMu.Lock()
	defer k.environMu.Unlock()
	k.since.Store(time.Now().UnixNano())
	defer k.since.Store(0)
	alive := -1
	if k.reads++; k.reads > 1 {
		alive = k.openImage()
	}
	env, unset, err := k.readEnviron(buf)
	if err != nil {
		closeFD(alive)
		return nil, err
	}
	said := parse(env, unset || len(env) == len(buf))
	// The program is asked about at last: where it is the one from before the environment was opened,
	// the environment is its.
	if unset || alive < 0 || !lives(alive) {
		closeFD(alive)
		return said, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropImage()
	k.image = image{alive: alive, said: said}
	return said, nil
}

// openImage returns a descriptor that tells of an exec, -1 where there can be none: not while the memory
// is shared with the parent (between vfork and exec), which lives on.
func (k *Task) openImage() int {
	line := k.Ancestors()
	// Asked before it is opened: what is not shared with the parent then never will be.
	if k.seen.PPID > 0 && (len(line) == 0 || sharesMemory(k.tid, line[0].PID)) {
		return -1
	}
	fd, err := k.dir.open("pagemap")
	if err != nil {
		return -1
	}
	return fd
}

// lives reports whether the memory that a pagemap was opened for is still there: exec and exit take it
// away. Of memory that is there the kernel refuses to tell a part of an entry, of none it tells nothing
// (pagemap_read in fs/proc/task_mmu.c). Neither waits for anything of the process, as reading its memory would.
func lives(fd int) bool {
	var part [1]byte
	_, err := unix.Pread(fd, part[:], 0)
	return err == unix.EINVAL
}

// dropImage forgets the environment. k.mu is held.
func (k *Task) dropImage() {
	closeFD(k.image.alive)
	k.image = image{alive: -1}
}

// readEnviron reads what there is. An empty environment is unset where it says nothing: the process's first
// thread has exited, or it is in the middle of an exec, when the new memory is there and its environment is not yet.
func (k *Task) readEnviron(buf []byte) (env []byte, unset bool, err error) {
	fd, err := k.dir.open("environ")
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	if env, err = readAt(fd, buf); err != nil || len(env) > 0 {
		return env, false, err
	}
	if k.unset() {
		return nil, true, nil
	}
	// It may have been set between the two looks; now that it is, it is whole.
	again, err := k.dir.open("environ")
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(again)
	env, err = readAt(again, buf)
	return env, false, err
}

func (k *Task) unset() bool {
	s, err := k.dir.stat()
	return err != nil || s.State == 'Z' || s.State == 'X' || s.EnvEnd == 0
}

func closeFD(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
