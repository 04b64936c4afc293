package proc

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// ErrGone says that the process does not exist any more.
var ErrGone = errors.New("process is gone")

const (
	statLimit   = 1024
	statusLimit = 16 << 10
	cgroupLimit = 16 << 10 // a path of 4,095 bytes and a dozen hierarchies of version 1
)

// dir is an open /proc/TID directory: it stays with the task that it was opened for.
type dir int

func openDir(tid int) (dir, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, gone(err)
	}
	return dir(fd), nil
}

func (d dir) close() { unix.Close(int(d)) }

func (d dir) open(name string) (int, error) {
	for {
		fd, err := unix.Openat(int(d), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		return fd, gone(err)
	}
}

// read returns at most limit bytes of a file.
func (d dir) read(name string, limit int) ([]byte, error) {
	fd, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readAt(fd, make([]byte, limit))
}

func (d dir) stat() (Stat, error) {
	fd, err := d.open("stat")
	if err != nil {
		return Stat{}, err
	}
	defer unix.Close(fd)
	var buf [statLimit]byte
	b, err := readAt(fd, buf[:])
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

// readAt fills buf from the start of a file of /proc and returns what there was. One call is enough:
// the files read here stop short of what is asked for at their end only.
func readAt(fd int, buf []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, gone(err)
		}
		return buf[:n], nil
	}
}

func gone(err error) error {
	if err == unix.ESRCH || err == unix.ENOENT {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// Self reports whether /proc is the one of this process's own pid namespace. Where it is not
// (unshare --pid without a new /proc), the numbers in it name other processes than those that the
// kernel tells this one.
func Self() bool {
	d, err := openDir(unix.Getpid())
	if err != nil {
		return false
	}
	defer d.close()
	b, err := d.read("status", statusLimit)
	if err != nil {
		return false
	}
	tgid, ns, err := ParseStatus(b)
	link, linkErr := readlink("/proc/self")
	return err == nil && linkErr == nil && tgid == unix.Getpid() && len(ns) == 1 && link == strconv.Itoa(tgid)
}

func readlink(path string) (string, error) {
	var buf [64]byte
	n, err := unix.Readlink(path, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Lookup returns the process with that pid as it is named over its whole life.
func Lookup(pid int) (session.Process, error) {
	d, err := openDir(pid)
	if err != nil {
		return session.Process{}, err
	}
	defer d.close()
	s, err := d.stat()
	if err != nil {
		return session.Process{}, err
	}
	return session.Process{PID: pid, Start: s.Start}, nil
}

// Cgroup returns the path of p in the cgroup v2 hierarchy.
func Cgroup(p session.Process) (string, error) {
	d, err := openProcess(p)
	if err != nil {
		return "", err
	}
	defer d.close()
	b, err := d.read("cgroup", cgroupLimit)
	if err != nil {
		return "", err
	}
	path, ok := ParseCgroup(b)
	if !ok {
		return "", fmt.Errorf("%w cgroup file of process %d: it names no version 2 hierarchy", ErrMalformed, p.PID)
	}
	return path, nil
}

// openProcess opens the directory of p, of no later process with its number.
func openProcess(p session.Process) (dir, error) {
	d, err := openDir(p.PID)
	if err != nil {
		return -1, err
	}
	s, err := d.stat()
	if err == nil && s.Start != p.Start {
		err = fmt.Errorf("%w: its number %d was given to another one", ErrGone, p.PID)
	}
	if err != nil {
		d.close()
		return -1, err
	}
	return d, nil
}
