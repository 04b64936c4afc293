package proc

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStuck says that an earlier read of the same environment has not come back for long.
var ErrStuck = errors.New("reading the environment is stuck")

const stuckAfter = 50 * time.Millisecond

// Environ reads the environment of the task as it was at its exec into buf and returns what there
// was. cut says that there was more, or that the process cannot be asked: it has exited, or is in the middle of an exec. It can
// block for as long as the process likes.
func (k *Task) Environ(buf []byte) (env []byte, cut bool, err error) {
	if began := k.since.Load(); began != 0 && time.Now().UnixNano()-began > int64(stuckAfter) {
		return nil, false, ErrStuck
	}
	k.environMu.Lock()
	defer k.environMu.Unlock()
	k.since.Store(time.Now().UnixNano())
	defer k.since.Store(0)
	if k.environ >= 0 {
		env, err = readAt(k.environ, buf)
		if err != nil || len(env) > 0 {
			return env, len(env) == len(buf), err
		}
		// Nothing: exec has put another memory in the place of the one that the descriptor is for,
		// or the environment is empty.
		unix.Close(k.environ)
		k.environ = -1
	}
	env, err = k.freshEnviron(buf)
	if err == nil && len(env) == 0 {
		return env, k.unset(), nil
	}
	return env, len(env) == len(buf), err
}

// freshEnviron opens the environment anew, and keeps the descriptor where it can tell of an exec: not
// while the memory is shared with the parent (between vfork and exec), which lives on.
func (k *Task) freshEnviron(buf []byte) ([]byte, error) {
	line := k.Ancestors()
	// Asked before it is opened: what is not shared with the parent then never will be.
	shared := len(line) == 0 || sharesMemory(k.tid, line[0].PID)
	fd, err := k.dir.open("environ")
	if err != nil {
		return nil, err
	}
	env, err := readAt(fd, buf)
	if err != nil || shared || len(env) == 0 {
		unix.Close(fd)
		return env, err
	}
	k.environ = fd
	return env, nil
}

// unset reports whether an empty environment says nothing: the process's first thread has exited, or
// it is in the middle of an exec, when the new memory is there and its environment is not yet.
func (k *Task) unset() bool {
	s, err := k.dir.stat()
	return err != nil || s.State == 'Z' || s.State == 'X' || s.EnvEnd == 0
}
