package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/attribution"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/session"
	"aimon.at/vfsd/session/memstore"
)

var (
	_ server.Sessions      = (*session.Controller)(nil)
	_ attribution.Registry = session.Registry{}
)

var (
	root     = session.Caller{UID: 0, Privileged: true}
	owner    = session.Caller{UID: 1000}
	stranger = session.Caller{UID: 1001}
)

// world is a controller over a store in memory, with processes made up.
type world struct {
	*session.Controller
	t         *testing.T
	store     *memstore.Store
	processes *processes
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: memstore.New(), processes: &processes{all: map[int]session.Process{}}}
	w.restart()
	return w
}

// restart makes a new controller over the same store.
func (w *world) restart() {
	w.t.Helper()
	c, err := session.New(w.store, slog.New(slog.DiscardHandler), session.WithProcesses(w.processes.of))
	require.NoError(w.t, err)
	w.Controller = c
}

// open opens session id of uid 1000 with a mount.
func (w *world) open(id string) *collector {
	w.t.Helper()
	_, err := w.OpenSession(context.Background(), session.Session{ID: id, Owner: 1000, Source: "/src", Artifacts: true})
	require.NoError(w.t, err)
	col := &collector{}
	require.NoError(w.t, w.AttachMount(id, col))
	return col
}

func (w *world) execution(s session.ExecutionSpec) session.Execution {
	w.t.Helper()
	e, err := w.BeginExecution(context.Background(), owner, s)
	require.NoError(w.t, err)
	return e
}

func (w *world) toolUse(s session.ToolUseSpec) session.ToolUse {
	w.t.Helper()
	u, err := w.BeginToolUse(context.Background(), owner, s)
	require.NoError(w.t, err)
	return u
}

func (w *world) declare(id string) session.ToolUse {
	w.t.Helper()
	u, err := w.Declared("s1", session.Declaration{ToolUseID: id})
	require.NoError(w.t, err)
	return u
}

// collectIn returns the execution that an unattributed write of session s1 is collected in.
func (w *world) collectIn() session.Execution {
	w.t.Helper()
	e, err := w.Registry().Execution("s1", "", nil)
	require.NoError(w.t, err)
	return e
}

func ids[T any](all []T, id func(T) string) []string {
	out := []string{}
	for _, v := range all {
		out = append(out, id(v))
	}
	return out
}

func toolUseID(u session.ToolUse) string { return u.ID }

// processes are made up: owned by uid 1000, but for those below 10.
type processes struct {
	mu  sync.Mutex
	all map[int]session.Process
}

func (p *processes) start(pid int, at uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[pid] = session.Process{PID: pid, Start: at}
}

func (p *processes) end(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, pid)
}

func (p *processes) of(pid int) (session.Process, uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.all[pid]
	if !ok {
		return session.Process{}, 0, fmt.Errorf("process %d: %w", pid, session.ErrNotFound)
	}
	if pid < 10 {
		return found, 0, nil
	}
	return found, 1000, nil
}

// collector notes what it is told and fails where fail is set.
type collector struct {
	mu    sync.Mutex
	calls []string
	fail  error
	marks uint64
	see   func(t session.ToolUse) // called in FinishToolUse
}

var errCollector = errors.New("the collector fails")

func (c *collector) note(format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
	return c.fail
}

func (c *collector) setFail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// taken returns the calls so far and forgets them.
func (c *collector) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *collector) FinishToolUse(_ context.Context, t session.ToolUse) error {
	if c.see != nil {
		c.see(t)
	}
	if t.EndedAt == nil || t.EndedAt.Before(t.BeganAt) {
		return errors.New("no end time")
	}
	return c.note("tool %s", t.ID)
}

func (c *collector) FinishExecution(_ context.Context, e session.Execution) error {
	if e.EndedAt == nil || !e.Status.Ended() {
		return errors.New("no end")
	}
	return c.note("execution %s %s", e.ID, e.Status)
}

func (c *collector) Mark(_ context.Context, e session.Execution) (uint64, error) {
	err := c.note("mark %s", e.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	return c.marks, err
}
