package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReadProcess returns the process that has the pid now and the uid that it belongs to. A missing one
// is ErrNotFound.
func ReadProcess(pid int) (Process, uint32, error) {
	if pid <= 0 {
		return Process{}, 0, fmt.Errorf("process %d: %w", pid, ErrNotFound)
	}
	// One descriptor answers for one process: a pid that is used again shows as ESRCH.
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, 0, processError(pid, err)
	}
	defer unix.Close(dir)
	var stat unix.Stat_t
	if err := unix.Fstat(dir, &stat); err != nil {
		return Process{}, 0, processError(pid, err)
	}
	fd, err := unix.Openat(dir, "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, 0, processError(pid, err)
	}
	f := os.NewFile(uintptr(fd), "stat")
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return Process{}, 0, processError(pid, err)
	}
	start, err := startTime(line)
	if err != nil {
		return Process{}, 0, processError(pid, err)
	}
	return Process{PID: pid, Start: start}, stat.Uid, nil
}

func processError(pid int, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, ErrNotFound)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// startTime reads field 22 of /proc/PID/stat. The second field is the command's name in
// parentheses, chosen by the process: it may contain any byte, so what counts is after the last
// parenthesis.
func startTime(line []byte) (uint64, error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const third, want = 3, 22
	if len(fields) <= want-third {
		return 0, fmt.Errorf("stat has %d fields", len(fields))
	}
	return strconv.ParseUint(string(fields[want-third]), 10, 64)
}
