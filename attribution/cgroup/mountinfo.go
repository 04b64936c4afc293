package cgroup

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUnavailable says that no cgroup can be made on this machine or by this user. The wrapping
// message says why.
var ErrUnavailable = errors.New("no cgroup can be made")

// mount is a mounted cgroup v2 hierarchy.
type mount struct {
	root  string // the cgroup that is mounted, as in /proc/PID/cgroup
	point string // where
}

// parseMountinfo returns the cgroup2 mounts in the content of /proc/self/mountinfo
// (proc_pid_mountinfo(5)), the last mounted first. Lines that are not understood are left out.
func parseMountinfo(b string) []mount {
	var list []mount
	for line := range strings.Lines(b) {
		head, tail, ok := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if !ok || len(fields) < 6 || !strings.HasPrefix(tail, "cgroup2 ") {
			continue
		}
		m := mount{root: unescape(fields[3]), point: unescape(fields[4])}
		if strings.HasPrefix(m.root, "/") && strings.HasPrefix(m.point, "/") {
			list = append([]mount{m}, list...)
		}
	}
	return list
}

// unescape decodes the \ooo of blanks, newlines and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := octal(s[i:]); ok {
			out = append(out, c)
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func octal(s string) (byte, bool) {
	if len(s) < 4 || s[0] != '\\' {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s[1:4]) {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n*8 + int(c-'0')
	}
	return byte(n), n <= 255
}

// relative returns path, which is as in /proc/PID/cgroup, relative to what is mounted: "." for that
// itself. ok is false where it lies outside.
func (m mount) relative(path string) (rel string, ok bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/"))
	switch {
	case !ok:
		return "", false
	case rest == "" || rest == "/":
		return ".", true
	case rest[0] != '/':
		return "", false
	}
	return rest[1:], true
}

// open returns a descriptor for the mounted hierarchy, if it is one and the mount is not covered
// by another.
func (m mount) open() (int, error) {
	fd, err := unix.Open(m.point, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil || s.Type != unix.CGROUP2_SUPER_MAGIC {
		unix.Close(fd)
		return -1, unix.ENODEV
	}
	return fd, nil
}
