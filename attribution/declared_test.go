package attribution

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestDeclared(t *testing.T) {
	big := "BIG=" + strings.Repeat("x", 120<<10)
	yes := true
	for _, c := range []struct {
		name   string
		env    []string
		script string
		want   session.Attribution
	}{
		{"own", env("T1"), wait, session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"set by env", nil, `exec env VFSD_TOOL_USE_ID=T1 sh -c '` + wait + `'`,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"nearest ancestor's", env("T0"), `VFSD_TOOL_USE_ID=T1 sh -c 'env -i /bin/sh -c "echo \$\$; read x"; :'; :`,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"first of several", []string{"VFSD_TOOL_USE_ID=T1", "VFSD_TOOL_USE_ID=T2"}, "",
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"execution and intent", append(env("T1"), "VFSD_EXECUTION_ID=other", "VFSD_ARTIFACT=ON"), wait,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "other", Artifact: &yes}},
		{"execution that is not open", append(env("T1"), "VFSD_EXECUTION_ID=nowhere"), wait,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"intent alone", []string{"VFSD_ARTIFACT=yes"}, wait,
			session.Attribution{Sureness: session.None, ExecutionID: "current", Artifact: &yes}},
		{"intent that is not understood", append(env("T1"), "VFSD_ARTIFACT=perhaps"), wait,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"before a mass of variables", append(env("T1"), big, "C"+big, "D"+big), wait,
			session.Attribution{Sureness: session.Declared, ToolUseID: "T1", ExecutionID: "current"}},
		{"behind a mass of variables", []string{big, "C" + big, "D" + big, "VFSD_TOOL_USE_ID=T1"}, "",
			session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"empty", env(""), wait, session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"control character", env("a\x01b"), wait, session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"not UTF-8", env("a\xff"), wait, session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"too long", env(strings.Repeat("a", 257)), wait, session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"invalid hides the ancestor's", env("T0"), `VFSD_TOOL_USE_ID= sh -c '` + wait + `; :'; :`,
			session.Attribution{Sureness: session.None, ExecutionID: "current"}},
		{"nothing", nil, wait, session.Attribution{Sureness: session.None, ExecutionID: "current"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			f.execs["other"] = true
			r := resolver(t, f)
			pid := peerOf(t, c.env, c.script)
			if c.want.Sureness == session.Declared {
				c.want.Source = session.SourceEnvironment
			}
			for range 2 { // cold and warm
				require.Equal(t, c.want, ask(r, pid))
			}
		})
	}
}

// peerOf starts a shell script, or for "" a program that keeps its environment as it was given.
func peerOf(t *testing.T, env []string, script string) uint32 {
	t.Helper()
	if script == "" {
		p := startExact(t, "/bin/cat", env)
		return uint32(p.cmd.Process.Pid)
	}
	p := start(t, env, "/bin/sh", "-c", script)
	return p.pid()
}

func TestDeclaredWinsNothingAgainstWhatIsKnown(t *testing.T) {
	t.Run("a declared id that is refused is not replaced by the window", func(t *testing.T) {
		f := newFake()
		f.begin("OPEN")
		f.refuse = fmt.Errorf("%w: too many", session.ErrConflict)
		p := start(t, env("T1"), "/bin/sh", "-c", wait)
		got := ask(resolver(t, f), p.pid())
		require.Equal(t, session.Attribution{Sureness: session.None, DeclaredToolUseID: "T1", ExecutionID: "current"}, got)
	})
	t.Run("an ended one is late", func(t *testing.T) {
		f := newFake()
		f.begin("T1")
		f.end("T1", time.Now())
		p := start(t, env("T1"), "/bin/sh", "-c", wait)
		got := ask(resolver(t, f), p.pid())
		require.True(t, got.Late)
		require.Equal(t, "T1", got.ToolUseID)
	})
	t.Run("an id that is not valid is not replaced by the window", func(t *testing.T) {
		f := newFake()
		f.begin("OPEN")
		for _, id := range []string{"a\x01b", "a\xff"} {
			got := ask(resolver(t, f), start(t, env(id), "/bin/sh", "-c", wait).pid())
			require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"OPEN"}, ExecutionID: "current"}, got)
		}
		got := ask(resolver(t, f), start(t, env(""), "/bin/sh", "-c", wait).pid())
		require.Equal(t, "OPEN", got.ToolUseID, "empty is as good as unset")
	})
	t.Run("an environment that is too large to be read leaves the window undecided", func(t *testing.T) {
		f := newFake()
		f.begin("OPEN")
		big := "BIG=" + strings.Repeat("x", 120<<10)
		p := start(t, []string{big, "C" + big, "D" + big}, "/bin/sh", "-c", wait)
		got := ask(resolver(t, f), p.pid())
		require.Equal(t, session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"OPEN"}, ExecutionID: "current"}, got)
	})
}

func TestDeclaredNamesItsProcess(t *testing.T) {
	f := newFake()
	p := start(t, env("T1"), "/bin/sh", "-c", `env -i /bin/sh -c 'echo $$; read x'; :`)
	require.Equal(t, session.Declared, ask(resolver(t, f), p.pid()).Sureness)
	require.Equal(t, p.process(), f.seen[0].Process, "the ancestor carries it, not the caller")
}

func TestExecChangesTheAnswer(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, env("T1"), "/bin/sh", "-c", `echo $$; read x; exec env VFSD_TOOL_USE_ID=T2 /bin/sh -c 'echo $$; read x; exec env -u VFSD_TOOL_USE_ID /bin/sh -c "echo \$\$; read x"'`)
	pid := p.pid()
	for _, id := range []string{"T1", "T2", ""} {
		for range 4 { // read, read and kept, kept
			require.Equal(t, id, ask(r, pid).ToolUseID)
		}
		if id != "" {
			p.say("")
			require.Equal(t, pid, p.pid())
		}
	}
}

// TestExecOfAnAncestor: a child that names nothing is what its ancestors were when it was first looked at; what comes after
// an ancestor's exec is that one's.
func TestExecOfAnAncestor(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	const child = `env -i /bin/sh -c "echo \$\$; read x" <&3 &`
	p := start(t, env("T1"), "/bin/sh", "-c", child+` read x; exec env VFSD_TOOL_USE_ID=T2 /bin/sh -c '`+child+` read x'`)
	first := p.pid()
	for range 4 {
		require.Equal(t, "T1", ask(r, first).ToolUseID)
	}
	p.say("")
	second := p.pid()
	for range 4 {
		require.Equal(t, "T2", ask(r, second).ToolUseID)
		require.Equal(t, "T1", ask(r, first).ToolUseID)
	}
}

// TestBeginBetweenTwoOpens: what is kept says nothing of what is open.
func TestBeginBetweenTwoOpens(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	p := start(t, nil, "/bin/sh", "-c", `echo $$; read x; sh -c 'echo $$; read x'; :`)
	parent := p.pid()
	p.say("")
	pid := p.pid()
	for range 3 {
		require.Equal(t, session.None, ask(r, pid).Sureness)
	}
	f.begin("T1", with(p.process()), at(p.born(t).Add(-time.Second)))
	r.clock.since = 0
	for range 3 {
		require.Equal(t, "T1", ask(r, pid).ToolUseID)
		require.Equal(t, "T1", ask(r, parent).ToolUseID)
	}
	// In the tick in which the child started it would be on the border.
	f.end("T1", NextTick(t.Context()))
	require.True(t, ask(r, pid).Late)
}

func TestThread(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	self, err := os.Executable()
	require.NoError(t, err)
	p := start(t, append(env("T1"), helperEnv+"=thread"), self)
	tid := p.pid()
	require.NotEqual(t, p.cmd.Process.Pid, int(tid))
	require.Equal(t, "T1", ask(r, tid).ToolUseID)
	require.Equal(t, p.process(), f.seen[0].Process)

	f.begin("P1", with(p.process()))
	got := ask(r, tid)
	require.Equal(t, session.Exact, got.Sureness)
	require.Equal(t, "P1", got.ToolUseID)
	require.Equal(t, "T1", got.DeclaredToolUseID)
}

func TestInvalidIDIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := New("s1", newFake(), log)
	t.Cleanup(r.Close)
	p := start(t, env("a\x01b"), "/bin/sh", "-c", wait)
	pid := p.pid()
	for range 3 {
		ask(r, pid)
	}
	require.Equal(t, 1, strings.Count(out.String(), "is not valid"))
}

func TestCallerThatIsGone(t *testing.T) {
	f := newFake()
	r := resolver(t, f)
	cmd := exec.Command("/bin/true")
	require.NoError(t, cmd.Run())
	require.Equal(t, session.None, ask(r, uint32(cmd.Process.Pid)).Sureness)
	f.begin("OPEN")
	require.Equal(t, session.Ambiguous, ask(r, uint32(cmd.Process.Pid)).Sureness)
}

func TestDeadline(t *testing.T) {
	f := newFake()
	f.begin("OPEN")
	r := resolver(t, f)
	p := start(t, env("T1"), "/bin/sh", "-c", wait)
	pid := p.pid()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range maxReaders { // every reader is stuck
		r.readers.slots <- struct{}{}
	}
	got := r.Attribute(ctx, pid, 0)
	require.Equal(t, session.Ambiguous, got.Sureness)
	for range maxReaders {
		<-r.readers.slots
	}
	require.Equal(t, "T1", ask(r, pid).ToolUseID)
}
