package attribution

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
)

const few = 16 // tasks, enough for the ancestors of this process

// BenchmarkAttribute is the cost of one answer for a child of this process: warm with its descriptors
// kept, fresh for another child of a parent that is known each time, cold with nothing known.
func BenchmarkAttribute(b *testing.B) {
	parent, err := proc.Lookup(os.Getpid())
	require.NoError(b, err)
	path, err := proc.Cgroup(parent)
	require.NoError(b, err)
	for _, c := range []struct {
		name  string
		begin func(*fakeRegistry)
		env   string
	}{
		{"none", func(*fakeRegistry) {}, ""},
		{"window", func(f *fakeRegistry) { f.begin("T") }, ""},
		{"ancestor", func(f *fakeRegistry) { f.begin("T", with(parent)) }, ""},
		{"cgroup", func(f *fakeRegistry) { f.begin("T", in(path), with(parent)) }, ""},
		{"declared", func(*fakeRegistry) {}, "T"},
	} {
		var children [4 * few]uint32
		for i := range children {
			children[i] = benchCaller(b, c.env)
		}
		pid := children[0]
		f := newFake()
		c.begin(f)
		b.Run(c.name+"/warm", func(b *testing.B) {
			r := New("s1", f, quiet())
			defer r.Close()
			defer processor(b)()
			for b.Loop() {
				ask(r, pid)
			}
		})
		b.Run(c.name+"/fresh", func(b *testing.B) {
			r := New("s1", f, quiet(), WithTasks(2*few))
			defer r.Close()
			defer processor(b)()
			for i := 0; b.Loop(); i++ {
				ask(r, children[i%len(children)])
			}
		})
		b.Run(c.name+"/cold", func(b *testing.B) {
			r := New("s1", f, quiet())
			defer r.Close()
			defer processor(b)()
			for b.Loop() {
				ask(r, pid)
				r.table.Close()
				r.table = proc.NewTable(defaultTasks)
			}
		})
	}
}

// processor reports the time of the processors per answer: unlike the time that passes, it hardly depends
// on what else the machine does.
func processor(b *testing.B) func() {
	var before, after unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &before))
	return func() {
		require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &after))
		spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(spent)/float64(b.N)/1000, "cpu-µs/op")
	}
}

// benchCaller starts a process that has a usual environment and, where id is not "", declares it.
func benchCaller(b *testing.B, id string) uint32 {
	b.Helper()
	cat := exec.Command("/bin/cat")
	cat.Env = os.Environ()
	if id != "" {
		cat.Env = append(cat.Env, envToolUse+"="+id)
	}
	in, err := cat.StdinPipe()
	require.NoError(b, err)
	require.NoError(b, cat.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cat.Wait()
	})
	return uint32(cat.Process.Pid)
}
