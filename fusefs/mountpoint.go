package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"aimon.at/vfsd/session"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

const (
	subtype   = "vfsd"
	mountKind = "fuse." + subtype

	// answerWithin bounds how long a mount that may be dead or stuck is waited for.
	answerWithin = 2 * time.Second

	// maxStale bounds how many dead mounts on top of one another are taken away.
	maxStale = 16
)

// CheckMountpoint returns the absolute path of a mountpoint that a tree can be mounted at. It has to
// be an empty directory. A mount that a dead daemon left there is taken away first. The error says
// in one line what is wrong and wraps session.ErrInvalid, or session.ErrConflict where something is
// mounted.
func CheckMountpoint(mountpoint string) (string, error) {
	path, err := resolveMountpoint(mountpoint)
	if err != nil {
		return "", err
	}
	if err := clearStale(path); err != nil {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("mountpoint %q: %w", mountpoint, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%w mountpoint %q: it is not a directory", session.ErrInvalid, mountpoint)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("mountpoint %q: %w", mountpoint, err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%w mountpoint %q: it is not empty; choose an empty directory", session.ErrInvalid, mountpoint)
	}
	return path, nil
}

// resolveMountpoint makes the path absolute and free of symbolic links, without touching what may
// be mounted there.
func resolveMountpoint(mountpoint string) (string, error) {
	abs, err := filepath.Abs(mountpoint)
	if err != nil {
		return "", fmt.Errorf("mountpoint %q: %w", mountpoint, err)
	}
	if m, err := mountedAt(abs); err == nil && m != nil {
		return abs, nil
	}
	path, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w mountpoint %q: it does not exist; make it first", session.ErrInvalid, mountpoint)
	}
	if err != nil {
		// Not the end where a dead mount is at the last element.
		parent, perr := filepath.EvalSymlinks(filepath.Dir(abs))
		if perr == nil && dead(err) {
			return filepath.Join(parent, filepath.Base(abs)), nil
		}
		return "", fmt.Errorf("mountpoint %q: %w", mountpoint, err)
	}
	return path, nil
}

// mountedAt returns what is mounted on top at path, nil where nothing is: later lines of the table cover
// earlier ones.
func mountedAt(path string) (*mountinfo.Info, error) {
	at, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != path, false })
	if err != nil || len(at) == 0 {
		return nil, err
	}
	return at[len(at)-1], nil
}

// clearStale detaches mounts of dead daemons from path, and refuses any other.
func clearStale(path string) error {
	for range maxStale {
		m, err := mountedAt(path)
		if err != nil {
			return fmt.Errorf("mountpoint %q: %w", path, err)
		}
		if m == nil {
			return nil
		}
		if m.FSType != mountKind || !dead(answer(path)) {
			return fmt.Errorf("%w: a %s is mounted at %q; unmount it first, or choose another mountpoint", session.ErrConflict, m.FSType, path)
		}
		if err := detach(path); err != nil {
			return fmt.Errorf("%w: a dead mount at %q cannot be taken away: %w", session.ErrConflict, path, err)
		}
	}
	return fmt.Errorf("%w: too many dead mounts at %q", session.ErrConflict, path)
}

// dead reports whether err is what a mount says whose daemon is gone.
func dead(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

var errNoAnswer = errors.New("it does not answer")

// answer asks the mount at path something that only its daemon knows. A live but stuck daemon would
// keep us for ever.
func answer(path string) error {
	done := make(chan error, 1)
	go func() {
		var st unix.Statfs_t
		done <- unix.Statfs(path, &st)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(answerWithin):
		return errNoAnswer
	}
}

// detach takes the mount away from path at once; what uses it goes on until it is done.
func detach(path string) error {
	if os.Geteuid() == 0 {
		return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return fusermount("-uz", path)
}

// unmount takes it away where nothing uses it, and is EBUSY otherwise.
func unmount(path string) error {
	if os.Geteuid() == 0 {
		return unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	}
	err := fusermount("-u", path)
	if m, merr := mountedAt(path); err != nil && merr == nil && m != nil {
		return fmt.Errorf("%w: %w", unix.EBUSY, err)
	}
	return err
}

func fusermount(flag, path string) error {
	bin, err := exec.LookPath("fusermount3")
	if err != nil {
		return fmt.Errorf("%w; install the package fuse3", err)
	}
	out, err := exec.Command(bin, flag, "--", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Live reports whether the mount at path is served by a daemon. One that does not answer in time counts
// as live.
func Live(path string) bool { return !dead(answer(path)) }
