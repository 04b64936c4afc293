package conn

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Options say how to mount.
type Options struct {
	Source     string // first column of /proc/mounts
	Subtype    string // the file system is called "fuse.Subtype" there
	AllowOther bool
	MaxRead    int // largest read
}

// Mount mounts a new connection at the directory path, nosuid and nodev, permissions checked by the
// kernel, and returns its descriptor. Root does it itself, others have fusermount3 do it.
func Mount(path string, o Options) (fd int, err error) {
	if os.Geteuid() == 0 {
		return mountDirect(path, o)
	}
	return mountHelped(path, o)
}

func mountDirect(path string, o Options) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return -1, err
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d,%s",
		fd, st.Mode&unix.S_IFMT, os.Geteuid(), os.Getegid(), o.common())
	if err := unix.Mount(o.Source, path, "fuse."+o.Subtype, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (o Options) common() string {
	s := "default_permissions,max_read=" + strconv.Itoa(o.MaxRead)
	if o.AllowOther {
		s += ",allow_other"
	}
	return s
}

// mountHelped has fusermount3, which is set-id root, mount and pass the descriptor.
func mountHelped(path string, o Options) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "fusermount3"), os.NewFile(uintptr(pair[1]), "fusermount3")
	defer ours.Close()
	defer theirs.Close()
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
	cmd := exec.Command("fusermount3", "-o",
		"nosuid,nodev,fsname="+escape.Replace(o.Source)+",subtype="+o.Subtype+","+o.common(), "--", path)
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	cmd.ExtraFiles = []*os.File{theirs}
	if out, err := cmd.CombinedOutput(); err != nil {
		return -1, fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return passed(int(ours.Fd()))
}

// passed receives the one descriptor that was sent through a socket.
func passed(socket int) (int, error) {
	data, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("fusermount3 passed no descriptor: %w", unix.EPROTO)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("fusermount3 passed no descriptor: %w", unix.EPROTO)
	}
	return fds[0], nil
}
