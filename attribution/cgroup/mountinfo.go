package cgroup

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
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

// hierarchies returns the cgroup2 mounts of a table in the form of /proc/self/mountinfo, the last
// mounted first.
func hierarchies(table io.Reader) ([]mount, error) {
	infos, err := mountinfo.GetMountsFromReader(table, mountinfo.FSTypeFilter("cgroup2"))
	if err != nil {
		return nil, err
	}
	list := make([]mount, 0, len(infos))
	for _, i := range slices.Backward(infos) {
		list = append(list, mount{root: i.Root, point: i.Mountpoint})
	}
	return list, nil
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
