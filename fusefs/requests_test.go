package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// requestKinds are the names of the requestKinds of requests that occur here.
var requestKinds = map[uint32]string{
	1: "LOOKUP", 2: "FORGET", 3: "GETATTR", 4: "SETATTR", 9: "MKDIR", 10: "UNLINK", 11: "RMDIR", 12: "RENAME", 14: "OPEN",
	15: "READ", 16: "WRITE", 17: "STATFS", 18: "RELEASE", 21: "SETXATTR", 22: "GETXATTR", 25: "FLUSH", 27: "OPENDIR",
	28: "READDIR", 29: "RELEASEDIR", 35: "CREATE", 36: "INTERRUPT", 42: "BATCH_FORGET", 44: "READDIRPLUS", 45: "RENAME2",
}

// requests counts by kind what do makes the kernel ask, without forgets, and releases as they lag.
func (m *mounted) requests(do func()) map[string]uint64 {
	m.t.Helper()
	before, _ := m.command("stats")
	do()
	after, _ := m.command("stats")
	out := map[string]uint64{}
	for kind, n := range after.Served {
		name := requestKinds[kind]
		if name == "" {
			name = fmt.Sprint(kind)
		}
		if n -= before.Served[kind]; n > 0 && name != "FORGET" && name != "BATCH_FORGET" && name != "RELEASE" && name != "RELEASEDIR" {
			out[name] = n
		}
	}
	return out
}

const someFiles = 100

// TestRequests bounds how many requests ordinary work makes the kernel send: they are what a mount
// costs. Linux asks for the directory's attributes after each change of it, to check permissions,
// and for security.capability before the first write to an inode and at every chown.
func TestRequests(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		run := func(name string, args ...string) func() {
			return func() {
				out, err := exec.Command(name, args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
		}
		require.NoError(t, os.Mkdir(m.path("d"), 0o755))
		require.NoError(t, os.Mkdir(m.path("e"), 0o755))
		tar, e := m.below("..", "t.tar"), m.path("e")
		reading := map[string]uint64{"OPENDIR": 4, "READDIR": 4, "READDIRPLUS": 4, "STATFS": 2, "LOOKUP": 2, "GETATTR": 4}
		for _, step := range []struct {
			name   string
			do     func()
			perAll map[string]uint64
			each   map[string]uint64 // for each file
		}{
			{"create", func() { m.makeFiles("d") }, nil,
				map[string]uint64{"LOOKUP": 1, "CREATE": 1, "GETXATTR": 1, "GETATTR": 1, "WRITE": 1}},
			{"tar", run("tar", "cf", tar, "-C", m.source, "d"), nil, nil},
			{"untar", run("tar", "xf", tar, "-C", e), map[string]uint64{"MKDIR": 1, "OPENDIR": 1, "LOOKUP": 2, "GETATTR": 4, "SETATTR": 4},
				map[string]uint64{"LOOKUP": 1, "CREATE": 1, "GETXATTR": 2, "GETATTR": 1, "SETATTR": 3, "WRITE": 1}},
			{"find", run("find", e), reading, nil},
			{"du", run("du", "-s", e), reading, nil},
			{"grep", run("sh", "-c", "! grep -r none "+e), reading, map[string]uint64{"OPEN": 1, "READ": 1}},
			{"rm", run("rm", "-rf", e), map[string]uint64{"RMDIR": 2, "OPENDIR": 4, "READDIR": 4, "READDIRPLUS": 4, "STATFS": 2, "LOOKUP": 2, "GETATTR": 4},
				map[string]uint64{"UNLINK": 1, "GETATTR": 1}},
		} {
			for kind, n := range m.requests(step.do) {
				require.LessOrEqual(t, n, step.perAll[kind]+someFiles*step.each[kind], "%s: %s", step.name, kind)
			}
		}
	})
}

func (m *mounted) makeFiles(dir string) {
	for i := range someFiles {
		fd, err := unix.Open(m.path(dir, fmt.Sprint("f", i)), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		require.NoError(m.t, err)
		_, err = unix.Write(fd, []byte("text"))
		require.NoError(m.t, err)
		require.NoError(m.t, unix.Close(fd))
	}
}
