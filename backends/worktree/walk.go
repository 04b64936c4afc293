package worktree

import (
	"strings"

	"golang.org/x/sys/unix"
)

// maxWalk is how many bytes of a path one system call is given: less than PATH_MAX.
const maxWalk = 4000

// walk opens what is at path, "/" and names below the root, as O_PATH. The path may be of any length.
func (t *Direct) walk(path string) (*Desc, error) {
	rest := strings.TrimPrefix(path, "/")
	if rest == "" {
		return t.root.Hold(), nil
	}
	for name := range strings.SplitSeq(rest, "/") {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	at := t.root.Hold()
	for len(rest) > maxWalk {
		cut := strings.LastIndexByte(rest[:maxWalk], '/')
		if cut < 0 {
			at.Drop()
			return nil, unix.ENAMETOOLONG
		}
		next, err := t.HandleDir(at.fd, rest[:cut])
		at.Drop()
		if err != nil {
			return nil, err
		}
		at, rest = next, rest[cut+1:]
	}
	defer at.Drop()
	return openDesc(at.fd, rest, unix.O_PATH, 0)
}
