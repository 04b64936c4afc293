package attribution

import (
	"context"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/cgroup"
	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

// fresh starts a blocked shell, begins the tool use with it at the edge of a tick, and lets it go on
// with the script, whose first line is returned.
func fresh(t *testing.T, f *fakeRegistry, id string, env []string, script string) (*peer, uint32) {
	t.Helper()
	p := start(t, env, "/bin/sh", "-c", wait+"; "+script)
	p.pid()
	f.begin(id, with(p.process()), at(NextTick(context.Background())))
	p.say("")
	return p, p.pid()
}

func TestAncestry(t *testing.T) {
	const child = `/bin/sh -c 'echo $$; read x'; :`
	for _, c := range []struct {
		name, script string
	}{
		{"itself", wait},
		{"child", child},
		{"empty environment", `env -i ` + child},
		{"new session, parent waits", `setsid -w ` + child},
		{"nested shells", `sh -c "sh -c \"sh -c 'echo \\\$\\\$; read x'; :\"; :"; :`},
		{"pipeline", `cat | sh -c 'echo $$; read x'; :`},
		{"subshell", `(sh -c 'echo $PPID'; read x); :`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			r := resolver(t, f)
			_, pid := fresh(t, f, "T1", nil, c.script)
			for range 2 {
				got := ask(r, pid)
				require.Equal(t, session.Attribution{Sureness: session.Exact, Source: session.SourceAncestor, ToolUseID: "T1", ExecutionID: "exec-T1"}, got)
			}
		})
	}
}

func TestOrphan(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p, _ := fresh(t, f, "T1", nil, `echo $$; exec 3<&0; (sh -c 'read y; echo $$; read x; echo $$; read x' <&3 &); exit`)
	_, err := p.cmd.Process.Wait()
	require.NoError(t, err)
	f.end("T1", time.Now())
	p.say("")
	pid := p.pid()
	require.Equal(t, session.None, ask(r, pid).Sureness, "its line is lost")
}

func TestExactAgainstTheEnvironment(t *testing.T) {
	f := newFake()
	f.execs["E9"] = true
	r := resolver(t, f)
	_, pid := fresh(t, f, "T1", nil, `VFSD_TOOL_USE_ID=T9 VFSD_EXECUTION_ID=E9 VFSD_ARTIFACT=0 sh -c 'echo $$; read x'; :`)
	no := false
	require.Equal(t, session.Attribution{
		Sureness: session.Exact, Source: session.SourceAncestor, ToolUseID: "T1", DeclaredToolUseID: "T9",
		ExecutionID: "exec-T1", Artifact: &no,
	}, ask(r, pid))
	require.Empty(t, f.declared(), "what is not the answer is not begun")
}

func TestExecutionAndIntentOfExact(t *testing.T) {
	f := newFake()
	f.execs["E9"] = true
	r := resolver(t, f)
	_, pid := fresh(t, f, "T1", append(env("T1"), "VFSD_EXECUTION_ID=E9"), `env -i sh -c 'echo $$; read x'; :`)
	yes := true
	f.uses[0].Artifact = &yes
	require.Equal(t, session.Attribution{
		Sureness: session.Exact, Source: session.SourceAncestor, ToolUseID: "T1", ExecutionID: "E9", Artifact: &yes,
	}, ask(r, pid))
}

// TestIntervals serves one tool use after another with one shell, and leaves jobs behind.
func TestIntervals(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	shell := start(t, nil, "bash", "-c", `while read -r line; do eval "$line"; done`)
	const job = `sh -c 'echo $$; read x' <&3 &`
	who := shell.process()
	edge := func() time.Time { return NextTick(context.Background()) }
	jobIn := func() uint32 {
		shell.say(job)
		return shell.pid()
	}

	before := jobIn()
	f.begin("T1", with(who), at(edge()))
	first := jobIn()
	one := ask(r, uint32(who.PID))
	require.Equal(t, "T1", one.ToolUseID)
	require.Equal(t, session.Exact, one.Sureness)
	f.end("T1", edge())
	between := jobIn()
	f.begin("T2", with(who), at(edge()))
	second := jobIn()

	for range 2 {
		require.Equal(t, session.None, ask(r, before).Sureness, "only T2 is open, and it is not T2's")
		require.Equal(t, session.Attribution{Sureness: session.Exact, Source: session.SourceAncestor, ToolUseID: "T1", ExecutionID: "exec-T1", Late: true}, ask(r, first))
		require.Equal(t, session.None, ask(r, between).Sureness)
		require.Equal(t, session.Attribution{Sureness: session.Exact, Source: session.SourceAncestor, ToolUseID: "T2", ExecutionID: "exec-T2"}, ask(r, second))
		require.Equal(t, "T2", ask(r, uint32(who.PID)).ToolUseID)
	}
	f.end("T2", edge())
	require.Equal(t, session.None, ask(r, uint32(who.PID)).Sureness)
}

func TestBorder(t *testing.T) {
	c := newClock()
	_, offset, _ := readClocks()
	const start = 5_000_000
	when := func(d time.Duration) time.Time {
		return time.Unix(0, start*int64(tick)+int64(d)+offset)
	}
	use := func(id string, began, ended time.Duration) session.ToolUse {
		u := session.ToolUse{ID: id, BeganAt: when(began)}
		if e := when(ended); ended != 0 {
			u.EndedAt = &e
		}
		return u
	}
	c.since = 0
	c.offset = offset
	ms := time.Millisecond
	for _, tc := range []struct {
		name    string
		uses    []session.ToolUse
		orphans bool
		want    []string
		certain bool
	}{
		{"inside", []session.ToolUse{use("A", -100*ms, 100*ms)}, false, []string{"A"}, true},
		{"open", []session.ToolUse{use("A", -100*ms, 0)}, false, []string{"A"}, true},
		{"before", []session.ToolUse{use("A", 20*ms, 0)}, false, nil, false},
		{"after", []session.ToolUse{use("A", -100*ms, -20*ms)}, false, nil, false},
		{"ended within the tick", []session.ToolUse{use("A", -100*ms, 5*ms)}, false, []string{"A"}, false},
		{"began within the tick", []session.ToolUse{use("A", 5*ms, 100*ms)}, false, []string{"A"}, false},
		{"both within the tick", []session.ToolUse{use("A", -100*ms, 4*ms), use("B", 5*ms, 0)}, false, []string{"A", "B"}, false},
		{"began on its edge", []session.ToolUse{use("A", -100*ms, -1*ms), use("B", 0, 0)}, false, []string{"B"}, true},
		{"began on its end", []session.ToolUse{use("A", -100*ms, -20*ms), use("B", 10*ms, 0)}, false, nil, false},
		{"ended on its end", []session.ToolUse{use("A", -100*ms, 10*ms), use("B", 10*ms, 0)}, false, []string{"A"}, true},
		{"two that overlap", []session.ToolUse{use("A", -100*ms, 0), use("B", -50*ms, 0)}, false, []string{"A", "B"}, true},
		{"adopted", []session.ToolUse{use("A", -100*ms, -50*ms), use("B", -40*ms, 0)}, true, []string{"A", "B"}, false},
		{"adopted before", []session.ToolUse{use("A", 20*ms, 0)}, true, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := c.byChild(start, tc.uses, tc.orphans)
			require.ElementsMatch(t, tc.want, ids(v.possible))
			require.Equal(t, tc.certain, v.certain)
		})
	}
	t.Run("a wall clock that was set widens the doubt", func(t *testing.T) {
		set := c
		set.offset -= int64(time.Second)
		v := set.byChild(start, []session.ToolUse{use("A", -500*ms, 0)}, false)
		require.False(t, v.certain)
		require.Len(t, v.possible, 1)
	})
	t.Run("times from before the clock was watched are doubtful", func(t *testing.T) {
		late := c
		late.since = math.MaxInt64
		v := late.byChild(start, []session.ToolUse{use("A", -500*ms, 0)}, false)
		require.False(t, v.certain)
	})
}

func TestBorderIsAmbiguous(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	shell := start(t, nil, "/bin/sh", "-c", `echo $$; read x; sh -c 'echo $$; read x'; :`)
	shell.pid()
	shell.say("")
	child := shell.pid()
	// Exactly in the middle of the tick in which the child started.
	_, offset, _ := readClocks()
	mid := time.Unix(0, int64(lookup(t, int(child)).Start)*int64(tick)+int64(tick)/2+offset)
	f.begin("T1", with(shell.process()), at(mid.Add(-time.Hour)))
	f.end("T1", mid)
	f.begin("T2", with(shell.process()), at(mid))
	r.clock.since = 0
	require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"T1", "T2"}, ExecutionID: "current"}, ask(r, child))
}

func TestNextTick(t *testing.T) {
	for range 5 {
		at := NextTick(context.Background())
		_, offset, _ := readClocks()
		boot := at.UnixNano() - offset
		require.Equal(t, int64(0), onEdge(boot)%int64(tick))
		require.False(t, at.After(time.Now()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.WithinDuration(t, time.Now(), NextTick(ctx), time.Second)
}

func TestNested(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p, _ := fresh(t, f, "OUTER", nil, `echo $$; read x; sh -c 'echo $$; read x; sh -c "echo \$\$; read x"; :'; :`)
	p.say("")
	inner := p.pid()
	f.begin("INNER", with(lookup(t, int(inner))), at(NextTick(context.Background())))
	p.say("")
	require.Equal(t, "INNER", ask(r, p.pid()).ToolUseID)
	require.Equal(t, "INNER", ask(r, inner).ToolUseID)
	f.end("INNER", NextTick(context.Background()))
	require.Equal(t, "OUTER", ask(r, inner).ToolUseID, "by itself it is inside the outer one still")
}

func TestOtherSessions(t *testing.T) {
	t.Run("lies in another session's and in none of this", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		_, pid := fresh(t, f, "THEIRS", env("THEIRS"), wait)
		f.uses[0].SessionID = "s2"
		f.begin("OPEN")
		require.Equal(t, session.Attribution{Sureness: session.None, ExecutionID: "current", DeclaredToolUseID: "THEIRS"}, ask(r, pid))
	})
	t.Run("declares one of this inside of another session's", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		_, pid := fresh(t, f, "THEIRS", env("THEIRS"), `VFSD_TOOL_USE_ID=OURS sh -c 'echo $$; read x'; :`)
		f.uses[0].SessionID = "s2"
		require.Equal(t, "OURS", ask(r, pid).ToolUseID)
	})
	t.Run("another session's inside of one of this", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		p, _ := fresh(t, f, "OURS", nil, `echo $$; read x; sh -c 'echo $$; read x; sh -c "echo \$\$; read x"; :'; :`)
		p.say("")
		f.begin("THEIRS", with(lookup(t, int(p.pid()))), of("s2"), at(NextTick(context.Background())))
		p.say("")
		require.Equal(t, "OURS", ask(r, p.pid()).ToolUseID)
	})
}

func TestInheritedIDOfAPersistentShell(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, env("T1"), "/bin/sh", "-c", `while read -r line; do eval "$line"; done`)
	f.begin("T1", with(p.process()), at(NextTick(context.Background())))
	f.end("T1", NextTick(context.Background()))
	f.begin("T2", with(p.process()), at(NextTick(context.Background())))
	f.end("T2", NextTick(context.Background()))
	p.say(`sh -c 'echo $$; read x' <&3 &`)
	got := ask(r, p.pid())
	require.Equal(t, session.None, got.Sureness, "T1's id is what the shell was begun with, not whose child this is")
	require.Equal(t, "T1", got.DeclaredToolUseID)
}

func TestWindow(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, nil, "/bin/sh", "-c", wait)
	pid := p.pid()
	require.Equal(t, session.Attribution{Sureness: session.None, ExecutionID: "current"}, ask(r, pid))
	f.begin("T1")
	require.Equal(t, session.Attribution{Sureness: session.Window, Source: session.SourceWindow, ToolUseID: "T1", ExecutionID: "exec-T1"}, ask(r, pid))
	f.begin("OTHER", of("s2"))
	require.Equal(t, "T1", ask(r, pid).ToolUseID)
	f.begin("T0")
	require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"T0", "T1"}, ExecutionID: "current"}, ask(r, pid))
	f.end("T1", time.Now())
	f.end("T0", time.Now())
	require.Equal(t, session.None, ask(r, pid).Sureness)
	f.begin("LATER", at(time.Now().Add(time.Hour)))
	require.Equal(t, session.Ambiguous, ask(r, pid).Sureness, "it began after the change did")
}

// TestLeftover: who started in the time of an ended tool use may be left from it.
func TestLeftover(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	edge := func() time.Time { return NextTick(context.Background()) }
	worker := start(t, nil, "/bin/sh", "-c", `while read -r line; do eval "$line"; done`)
	const job = `sh -c 'echo $$; read x; sh -c "echo \$\$; read x"; :' <&3 &`
	f.begin("T1", at(edge()))
	worker.say(job)
	left := worker.pid()
	f.end("T1", edge())
	f.begin("T2", at(edge()))
	both := session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"T1", "T2"}, ExecutionID: "current"}
	require.Equal(t, both, ask(r, left))
	require.Equal(t, both, ask(r, left))
	worker.say(job)
	require.Equal(t, "T2", ask(r, worker.pid()).ToolUseID, "started in its time, by whom was there before")
	require.Equal(t, "T2", ask(r, uint32(worker.cmd.Process.Pid)).ToolUseID)
	f.begin("T3", at(edge()))
	f.end("T2", edge())
	require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"T1", "T3"}, ExecutionID: "current"}, ask(r, left))
	require.Equal(t, "T3", ask(r, uint32(worker.cmd.Process.Pid)).ToolUseID)
}

func TestForeignPidNamespace(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	require.Equal(t, session.None, ask(r, 0).Sureness)
	f.begin("T1")
	require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"T1"}, ExecutionID: "current"}, ask(r, 0))
}

func TestCandidatesAreCapped(t *testing.T) {
	f := newFake()
	for i := range 3 * maxCandidates {
		f.begin(strconv.Itoa(i))
	}
	require.Len(t, ask(resolver(t, f), 0).Candidates, maxCandidates)
}

func TestWriterInAnotherPidNamespace(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p, _ := fresh(t, f, "T1", nil, `echo $$; unshare -pf sh -c '(sh -c "echo ready; read x"; :); :'; :`)
	require.Equal(t, "ready", p.hear())
	got := ask(r, uint32(deepest(t, p.cmd.Process.Pid)))
	require.Equal(t, "T1", got.ToolUseID)
	require.Equal(t, session.Exact, got.Sureness)
}

// deepest follows first children down.
func deepest(t *testing.T, pid int) int {
	t.Helper()
	for {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
		require.NoError(t, err)
		var child int
		for _, c := range string(b) {
			if c < '0' || c > '9' {
				break
			}
			child = child*10 + int(c-'0')
		}
		if child == 0 {
			return pid
		}
		pid = child
	}
}

// TestInitOfANamespace: whoever hangs on the init of a pid namespace may be an orphan of an earlier
// tool use, whenever it started.
func TestInitOfANamespace(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, nil, "unshare", "-pf", "--kill-child", "sh", "-c", `echo ready; while read -r line; do eval "$line"; done`)
	require.Equal(t, "ready", p.hear())
	shell := lookup(t, deepest(t, p.cmd.Process.Pid))
	f.begin("T1", with(shell), at(NextTick(context.Background())))
	p.say(`sh -c 'echo started; read x' <&3 &`)
	require.Equal(t, "started", p.hear())
	f.end("T1", NextTick(context.Background()))
	f.begin("T2", with(shell), at(NextTick(context.Background())))
	p.say(`sh -c 'echo ready; read x' <&3 &`)
	require.Equal(t, "ready", p.hear())
	got := ask(r, uint32(deepest(t, shell.PID)))
	require.Equal(t, session.Ambiguous, got.Sureness)
	require.Equal(t, []string{"T1"}, got.Candidates, "the first child started in T1's time")
}

func TestCgroup(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	g, err := cgroup.New(func(string) {}, quiet())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	run := func(id, script string) (*peer, uint32) {
		p := start(t, nil, "/bin/sh", "-c", wait+"; "+script)
		p.pid()
		path, err := g.Enter(context.Background(), "s1", id, p.cmd.Process.Pid)
		require.NoError(t, err)
		f.begin(id, in(path), with(p.process()))
		p.say("")
		return p, p.pid()
	}
	want := session.Attribution{Sureness: session.Exact, Source: session.SourceCgroup, ToolUseID: "T1", ExecutionID: "exec-T1"}

	t.Run("follows everything", func(t *testing.T) {
		p, pid := run("T1", `echo $$; env -i setsid sh -c 'exec 3<&0; (sh -c "read y; echo \$\$; read x" <&3 &)'; exit`)
		require.Equal(t, want, ask(r, pid))
		_, err := p.cmd.Process.Wait()
		require.NoError(t, err)
		f.end("T1", time.Now())
		p.say("")
		want.Late = true
		require.Equal(t, want, ask(r, p.pid()))
	})
	t.Run("a tool use begun with a process inside is further in", func(t *testing.T) {
		p, _ := run("T2", `echo $$; read x; sh -c 'echo $$; read x; sh -c "echo \$\$; read x"; :'; :`)
		p.say("")
		inner := p.pid()
		require.Equal(t, "T2", ask(r, inner).ToolUseID)
		f.begin("T3", with(lookup(t, int(inner))), at(NextTick(context.Background())))
		p.say("")
		got := ask(r, p.pid())
		require.Equal(t, "T3", got.ToolUseID)
		require.Equal(t, session.SourceAncestor, got.Source)
	})
	t.Run("a tool use begun with a process around is further out", func(t *testing.T) {
		p := start(t, nil, "/bin/sh", "-c", `echo $$; read x; sh -c 'echo $$; read x; echo $$; read x'; :`)
		p.pid()
		f.begin("T4", with(p.process()), at(NextTick(context.Background())))
		p.say("")
		inner := p.pid()
		path, err := g.Enter(context.Background(), "s1", "T5", int(inner))
		require.NoError(t, err)
		f.begin("T5", in(path))
		require.Equal(t, "T5", ask(r, inner).ToolUseID)
	})
	t.Run("nested cgroups", func(t *testing.T) {
		p, _ := run("T6", `echo $$; read x; sh -c 'echo $$; read x; echo $$; read x'; :`)
		p.say("")
		inner := p.pid()
		require.Equal(t, "T6", ask(r, inner).ToolUseID)
		path, err := g.Enter(context.Background(), "s1", "T7", int(inner))
		require.NoError(t, err)
		require.Equal(t, "T6", ask(r, inner).ToolUseID, "nobody knows of it yet")
		f.begin("T7", in(path))
		require.Equal(t, "T7", ask(r, inner).ToolUseID, "moved while its descriptors were kept")
	})
	t.Run("another session's", func(t *testing.T) {
		p := start(t, nil, "/bin/sh", "-c", wait)
		pid := p.pid()
		path, err := g.Enter(context.Background(), "s2", "T8", int(pid))
		require.NoError(t, err)
		f.begin("T8", in(path), of("s2"))
		require.Equal(t, session.None, ask(r, pid).Sureness)
	})
}

// TestReusedPid gives a number to a second process in a small pid namespace, which the test enters as
// another process of itself.
func TestReusedPid(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("unshare", "-pf", "--mount-proc", self, "-test.run=TestInSmallNamespace", "-test.v")
	cmd.Env = append(os.Environ(), "ATTRIBUTION_TEST_NAMESPACE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestInSmallNamespace/")
}

func TestInSmallNamespace(t *testing.T) {
	if os.Getenv("ATTRIBUTION_TEST_NAMESPACE") == "" {
		return // TestReusedPid runs it
	}
	// takes starts a shell that has the number pid: again where a thread of the test was quicker.
	takes := func(t *testing.T, pid int, env []string) *peer {
		for {
			require.NoError(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0o644))
			p := start(t, env, "/bin/sh", "-c", wait)
			if p.pid() == uint32(pid) {
				return p
			}
			require.NoError(t, unix.Kill(p.cmd.Process.Pid, unix.SIGKILL))
		}
	}
	ends := func(t *testing.T, p *peer) {
		p.say("")
		_, err := p.cmd.Process.Wait()
		require.NoError(t, err)
		NextTick(context.Background()) // the kernel's start times tell ticks apart, not less
		NextTick(context.Background())
	}
	t.Run("as a begun process", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		p := takes(t, 700, nil)
		f.begin("T1", with(p.process()))
		require.Equal(t, "T1", ask(r, 700).ToolUseID)
		ends(t, p)
		f.end("T1", time.Now())
		takes(t, 700, nil)
		require.Equal(t, session.Attribution{Sureness: session.None, ExecutionID: "current"}, ask(r, 700))
	})
	t.Run("as a cached caller", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		p := takes(t, 800, env("T1"))
		require.Equal(t, "T1", ask(r, 800).ToolUseID)
		ends(t, p)
		takes(t, 800, env("T2"))
		require.Equal(t, "T2", ask(r, 800).ToolUseID)
	})
	t.Run("as an ancestor", func(t *testing.T) {
		f := newFake()
		r := resolver(t, f)
		p := start(t, env("T1"), "/bin/sh", "-c", `exec 3<&0; env -i /bin/sh -c 'echo $$; read x; echo $$; read x' <&3 & read x`)
		child := p.pid()
		require.Equal(t, "T1", ask(r, child).ToolUseID)
		require.NoError(t, p.cmd.Process.Kill())
		_, err := p.cmd.Process.Wait()
		require.NoError(t, err)
		NextTick(context.Background())
		NextTick(context.Background())
		takes(t, p.cmd.Process.Pid, env("T2"))
		require.Equal(t, "T1", ask(r, child).ToolUseID, "where it came from does not change")
	})
}

func TestProcIsOurs(t *testing.T) { require.True(t, proc.Self()) }

// TestProcOfAnotherNamespace runs a daemon in a pid namespace of its own with the outer /proc: the
// numbers there name others.
func TestProcOfAnotherNamespace(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("unshare", "-pf", self, "-test.run=TestInForeignProc", "-test.v")
	cmd.Env = append(os.Environ(), "ATTRIBUTION_TEST_NAMESPACE=2", "VFSD_TOOL_USE_ID=WRONG")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestInForeignProc")
}

func TestInForeignProc(t *testing.T) {
	if os.Getenv("ATTRIBUTION_TEST_NAMESPACE") != "2" {
		return // TestProcOfAnotherNamespace runs it
	}
	f := newFake()
	r := resolver(t, f)
	for pid := range uint32(300) {
		require.Equal(t, session.None, ask(r, pid).Sureness)
	}
	require.Empty(t, f.declared())
}

// TestBetweenIntervals: what a process starts between its tool uses is none of theirs, and may be
// another's that is open.
func TestBetweenIntervals(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, nil, "/bin/sh", "-c", `echo $$; read x; sh -c 'echo $$; read x'; :`)
	p.pid()
	f.begin("T1", with(p.process()), at(time.Now().Add(-time.Minute)))
	f.end("T1", NextTick(t.Context()))
	NextTick(t.Context())
	p.say("")
	pid := p.pid()
	require.Equal(t, session.None, ask(r, pid).Sureness)
	f.begin("T2", at(time.Now()))
	got := ask(r, pid)
	require.Equal(t, session.Ambiguous, got.Sureness)
	require.Equal(t, []string{"T2"}, got.Candidates)
}
