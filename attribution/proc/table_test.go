package proc

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// child starts a process that lives until the test ends.
func child(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/cat")
	cmd.Env = env
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestLook(t *testing.T) {
	table := NewTable(80)
	defer table.Close()
	cmd := child(t, "A=b")
	for range 2 {
		task, path, err := table.Look(cmd.Process.Pid)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(path, "/"))
		want, err := Lookup(cmd.Process.Pid)
		require.NoError(t, err)
		require.Equal(t, want, task.Process)
		line := task.Ancestors()
		require.Equal(t, os.Getpid(), line[0].PID)
		require.Equal(t, 1, line[len(line)-1].PID)
		for i, a := range line {
			up, err := table.Ancestor(line, i)
			require.NoError(t, err)
			require.Equal(t, a.PID == 1, up.Adopts())
			require.Equal(t, line[i+1:], up.Ancestors())
			up.Release()
		}
		env, cut, err := environ(task, 4096)
		require.NoError(t, err)
		require.False(t, cut)
		require.Equal(t, "A=b\x00", env)
		task.Release()
	}
	_, err := table.Ancestor([]Ancestor{{session.Process{PID: cmd.Process.Pid, Start: 1}}}, 0)
	require.ErrorIs(t, err, ErrGone)
	_, err = Cgroup(session.Process{PID: cmd.Process.Pid, Start: 1})
	require.ErrorIs(t, err, ErrGone)
}

// TestKept: an environment is kept from its second reading on, until exec or exit.
func TestKept(t *testing.T) {
	table := NewTable(8)
	defer table.Close()
	cmd := exec.Command("/bin/sh", "-c", "echo; read x; exec env A=c cat")
	cmd.Env = []string{"A=b", "PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n') // by now it runs the shell
	require.NoError(t, err)
	task, _, err := table.Look(cmd.Process.Pid)
	require.NoError(t, err)
	defer task.Release()
	for n := range 3 {
		_, ok := task.Kept()
		require.Equal(t, n == 2, ok)
		env, _, err := environ(task, 4096)
		require.NoError(t, err)
		require.Contains(t, env, "A=b\x00")
	}
	for _, s := range []string{"\n", "now cat\n"} {
		_, err = in.Write([]byte(s))
		require.NoError(t, err)
	}
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	for range 3 {
		env, _, err := environ(task, 4096)
		require.NoError(t, err)
		require.Contains(t, env, "A=c\x00")
	}
	_, ok := task.Kept()
	require.True(t, ok)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	_, ok = task.Kept()
	require.False(t, ok)
}

// TestParentThatIsKept: children of one parent share its line.
func TestParentThatIsKept(t *testing.T) {
	table := NewTable(80)
	defer table.Close()
	var lines [2][]Ancestor
	for i := range lines {
		task, _, err := table.Look(child(t).Process.Pid)
		require.NoError(t, err)
		lines[i] = task.Ancestors()
		task.Release()
	}
	require.Equal(t, os.Getpid(), lines[0][0].PID)
	require.Equal(t, lines[0], lines[1])
}

func TestEnvironIsCut(t *testing.T) {
	table := NewTable(8)
	defer table.Close()
	task, _, err := table.Look(child(t, "A="+strings.Repeat("x", 100)).Process.Pid)
	require.NoError(t, err)
	defer task.Release()
	env, cut, err := environ(task, 50)
	require.NoError(t, err)
	require.True(t, cut)
	require.Len(t, env, 50)
}

func TestTableIsBounded(t *testing.T) {
	const max = 4
	table := NewTable(max)
	before := descriptors(t)
	held := make([]*Task, 0, 12)
	for range cap(held) {
		task, _, err := table.Look(child(t).Process.Pid)
		require.NoError(t, err)
		held = append(held, task)
	}
	require.Equal(t, max, table.recent.Len())
	for _, task := range held {
		_, err := task.Cgroup() // what was pushed out is whole until it is released
		require.NoError(t, err)
		task.Release()
	}
	require.LessOrEqual(t, descriptors(t)-before, 12+2*max+12) // the children's pipes and pidfds included
	table.Close()
	require.Empty(t, table.tasks)
}

func TestEndedTaskIsDropped(t *testing.T) {
	table := NewTable(8)
	defer table.Close()
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	task, _, err := table.Look(cmd.Process.Pid)
	require.NoError(t, err)
	task.Release()
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	_, _, err = table.Look(cmd.Process.Pid)
	require.ErrorIs(t, err, ErrGone)
	require.Empty(t, table.tasks)
}

// TestSharedMemory: between vfork and exec a child has its parent's memory, and what its environment was then must not
// be kept for after.
func TestSharedMemory(t *testing.T) {
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	dir := t.TempDir()
	fifo := dir + "/fifo"
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	// posix_spawn opens the fifo in the child, with the parent's memory, and blocks there until it is
	// opened for writing.
	script := `
import os
pid = os.posix_spawn("/bin/cat", ["cat"], {"A": "child"}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "` + fifo + `", os.O_RDONLY, 0)])
os.waitpid(pid, 0)
`
	cmd := exec.Command(python, "-c", script)
	cmd.Env = []string{"A=parent", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	require.NoError(t, cmd.Start())
	pid := awaitChild(t, cmd.Process.Pid)
	table := NewTable(8)
	defer table.Close()
	first := environOf(t, table, pid)
	require.Contains(t, first, "A=parent")
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	require.NoError(t, err)
	for { // until exec is done
		env := environOf(t, table, pid)
		if env == "A=child\x00" {
			break
		}
		require.True(t, env == first || env == "", env)
		link, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		require.NoError(t, err)
		require.False(t, env == first && strings.HasSuffix(link, "/cat") && environOf(t, table, pid) == first, "the parent's environment was kept")
	}
	require.NoError(t, w.Close())
	require.NoError(t, cmd.Wait())
}

func environOf(t *testing.T, table *Table, pid int) string {
	t.Helper()
	task, _, err := table.Look(pid)
	require.NoError(t, err)
	defer task.Release()
	env, _, err := environ(task, 64<<10)
	require.NoError(t, err)
	return env
}

type read struct {
	env string
	cut bool
}

// environ returns what is kept of the environment, or reads it.
func environ(task *Task, limit int) (env string, cut bool, err error) {
	said, ok := task.Kept()
	if !ok {
		said, err = task.Environ(make([]byte, limit), func(env []byte, cut bool) any { return read{string(env), cut} })
	}
	if err != nil {
		return "", false, err
	}
	return said.(read).env, said.(read).cut, nil
}

// awaitChild returns the first child of a process that is blocked in open of a fifo.
func awaitChild(t *testing.T, parent int) int {
	t.Helper()
	for {
		name := "/proc/" + strconv.Itoa(parent) + "/task/" + strconv.Itoa(parent) + "/children"
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			require.NoError(t, err)
			if wchan, _ := os.ReadFile("/proc/" + f + "/wchan"); strings.Contains(string(wchan), "wait_for_partner") || strings.Contains(string(wchan), "fifo") {
				return pid
			}
		}
	}
}

// TestExitsDuringTheWalk kills processes on the line of others while it is followed: whatever comes
// out begins with true ancestors.
func TestExitsDuringTheWalk(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				cmd := exec.Command("/bin/sh", "-c", `sh -c 'sh -c "echo \$\$; exec cat" <&3 & echo; read x' 3<&0; :`)
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Error(err)
					return
				}
				out, err := cmd.StdoutPipe()
				if err != nil || cmd.Start() != nil {
					t.Error("start", err)
					return
				}
				r := bufio.NewReader(out)
				pid := 0
				for pid == 0 {
					line, err := r.ReadString('\n')
					if err != nil {
						break
					}
					pid, _ = strconv.Atoi(strings.TrimSpace(line))
				}
				done := make(chan error, 1)
				go func() { done <- cmd.Process.Kill() }()
				table := NewTable(4)
				if task, _, err := table.Look(pid); err == nil {
					last := task.Process
					for _, a := range task.Ancestors() {
						if a.Start > last.Start {
							t.Errorf("%v is no ancestor of %v", a, last)
						}
						last = a.Process
					}
					task.Release()
				}
				table.Close()
				<-done
				_ = in.Close()
				_ = cmd.Wait()
			}
		})
	}
	wg.Wait()
}
