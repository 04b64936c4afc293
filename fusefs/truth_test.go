package fusefs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// outcome is what a program would see, line by line.
type outcome struct {
	t     *testing.T
	dir   string
	lines []string
}

func (o *outcome) say(format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			var errno syscall.Errno
			if errors.As(err, &errno) {
				args[i] = unix.ErrnoName(errno)
			}
		}
	}
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *outcome) path(name string) string { return filepath.Join(o.dir, name) }

func (o *outcome) stat(name string) {
	var st unix.Stat_t
	if err := unix.Lstat(o.path(name), &st); err != nil {
		o.say("stat %s: %v", name, err)
		return
	}
	size := st.Size
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		size = 0
	}
	o.say("stat %s: mode %o uid %d gid %d nlink %d size %d", name, st.Mode, st.Uid, st.Gid, st.Nlink, size)
}

func (o *outcome) must(err error) { require.NoError(o.t, err) }

// as runs do as another user, on a thread that is thrown away.
func (o *outcome) as(uid, gid int, groups []int, do func()) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		gids := make([]uint32, len(groups)+1)
		for i, g := range groups {
			gids[i] = uint32(g)
		}
		_, _, e1 := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(ptr(&gids[0])), 0)
		_, _, e2 := syscall.RawSyscall(syscall.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
		_, _, e3 := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e1 != 0 || e2 != 0 || e3 != 0 {
			o.say("cannot become uid %d: %v %v %v", uid, e1, e2, e3)
			return
		}
		do()
	}()
	wg.Wait()
}

// umask runs do with a umask of its thread alone.
func (o *outcome) umask(mask int, do func()) {
	old := unix.Umask(mask)
	defer unix.Umask(old)
	do()
}

func (o *outcome) create(name string, flags int, mode uint32) int {
	fd, err := unix.Open(o.path(name), flags|unix.O_CREAT|unix.O_CLOEXEC, mode)
	if err != nil {
		o.say("create %s: %v", name, err)
		return -1
	}
	return fd
}

func (o *outcome) file(name string, mode uint32, text string) {
	fd := o.create(name, unix.O_RDWR, mode)
	_, err := unix.Write(fd, []byte(text))
	o.must(err)
	unix.Close(fd)
}

// TestTruth runs each case on the disk and on a mount of a directory of the same disk: a program
// must not be able to tell them apart.
func TestTruth(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(truths)) {
		t.Run(name, func(t *testing.T) {
			disk := &outcome{t: t, dir: filepath.Join(scratch(t), "d")}
			require.NoError(t, os.Mkdir(disk.dir, 0o777))
			require.NoError(t, os.Chmod(disk.dir, 0o777))
			truths[name](disk)
			inModes(t, nil, func(t *testing.T, m *mounted) {
				watch := time.AfterFunc(patience, m.abort)
				defer watch.Stop()
				mount := &outcome{t: t, dir: m.path("d")}
				require.NoError(t, os.Mkdir(mount.dir, 0o777))
				require.NoError(t, os.Chmod(mount.dir, 0o777))
				truths[name](mount)
				require.Equal(t, disk.lines, mount.lines)
			})
		})
	}
}
