package main

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// micro is a workload of n times the same small thing, reported in microseconds a piece.
func micro(name string, n int, setup func(*measurement, string) error, do func(dir string, i int) error) workload {
	return workload{name: name, each: n, setup: setup, run: func(m *measurement, dir string) error {
		for i := range m.count(n) {
			if err := do(dir, i); err != nil {
				return err
			}
		}
		return nil
	}}
}

var micros = []workload{
	micro("LOOKUP", 20_000, nil, lookUp),
	micro("GETATTR", 20_000, oneFile, getAttr),
	micro("OPEN+RELEASE", 20_000, oneFile, openClose),
	micro("CREATE+RELEASE", 5_000, nil, createClose),
}

func oneFile(_ *measurement, dir string) error { return createClose(dir, 0) }

func numbered(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("f%d", i)) }

// lookUp looks for a name that is not there and was not looked for before: the kernel knows none.
func lookUp(dir string, i int) error {
	var st unix.Stat_t
	if err := unix.Lstat(numbered(dir, i), &st); err != unix.ENOENT {
		return fmt.Errorf("lstat: %w", err)
	}
	return nil
}

// getAttr insists on what the file system says, whatever the kernel may have cached.
func getAttr(dir string, _ int) error {
	var st unix.Statx_t
	return unix.Statx(unix.AT_FDCWD, numbered(dir, 0), unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
}

func openClose(dir string, _ int) error {
	fd, err := unix.Open(numbered(dir, 0), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func createClose(dir string, i int) error {
	fd, err := unix.Open(numbered(dir, i), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
