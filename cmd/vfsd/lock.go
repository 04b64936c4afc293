package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// lockSource takes the advisory lock that keeps a second daemon off a source directory. It is on
// the directory itself: it needs no file in the user's tree, follows it through every mount and
// ends with the process. The caller closes the file to give it back.
func lockSource(source string) (*os.File, error) {
	f, err := os.Open(source)
	if err != nil {
		return nil, fmt.Errorf("%w source %s: %v", session.ErrInvalid, source, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: source %s is served by another vfsd; unmount it there first", session.ErrConflict, source)
		}
		return nil, fmt.Errorf("lock source %s: %w", source, err)
	}
	return f, nil
}

// openStateDir makes the state directory and locks it. It holds what every session wrote, so it is
// nobody's but the daemon's.
func openStateDir(dir string) (*os.File, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no state directory is known; set --state-dir or HOME", session.ErrInvalid)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w state directory: %v; choose another with --state-dir", session.ErrInvalid, err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w state directory: %v; choose another with --state-dir", session.ErrInvalid, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: the state directory %s is in use by another vfsd; use that daemon (vfsctl mount), or give this one its own --state-dir and --socket", session.ErrConflict, dir)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
