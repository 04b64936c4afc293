package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Controller is where sessions, executions and tool uses begin, end and are looked up. It keeps what
// is open in memory and writes every change to its Store before it answers.
//
// # Rules
//
// An execution that is begun explicitly ends the implicit one as COMPLETED, unless it is a fork of
// it. The current execution is the one without parent that began last and is open, else the
// implicit one. A parent must be open when a fork begins; it may end while its forks run, and they
// go on. Ending an execution ends its open tool uses first.
//
// Ending what has ended is no error and answers the same, but for an execution that is to end with
// another status. From the moment an end is asked for, new writes are late; when the answer comes,
// the entries are final and everything is durable. An end that failed half way can be asked for
// again and goes on.
//
// A tool use that a writing process declared before its runtime began it is adopted by that begin:
// it is one of the API's from then on.
//
// # Locks
//
// mu is held for moments only, never over a call of the Store or a Collector. The order is
// live.ops, use.turn or run.turn, mu.
type Controller struct {
	store     Store
	log       *slog.Logger
	processOf func(pid int) (Process, uint32, error)
	clock     func() time.Time
	edge      func(context.Context) time.Time
	lastTime  atomic.Int64 // nanoseconds since the epoch

	mu        sync.RWMutex // guards everything below, and what live, run and use say
	sessions  map[string]*live
	cgroups   map[string]*use
	processes map[int][]*use // in order of beginning, all of the same process
	sweepAt   int            // how many processes there may be before those that are gone are dropped
}

// live is a session in memory. What it holds is guarded by Controller.mu.
type live struct {
	Session
	collector  Collector // of the live mount; nil without
	deleting   bool
	loaded     bool            // from the Store, and its ended tool uses are not bound yet
	executions map[string]*run // being begun, open, and being ended
	current    *run            // nil where none is open
	forks      map[string][]string
	forksDue   bool            // forks of ended executions are not in forks yet
	uses       map[string]*use // being begun, open, and being ended
	ended      recent
	past       past
	window     map[string]*use // the open ones with OriginAPI
	declared   int             // how many with OriginEnvironment are open or being begun

	// ops is held for reading by every begin and end (enter), and for writing by the removal of the
	// session, so that no row is put after it.
	ops sync.RWMutex
}

// run is an execution in memory.
type run struct {
	Execution
	begin
	turn sync.Mutex // held by the one who ends it; guards done
	done bool       // the end is durable
}

// use is a tool use in memory.
type use struct {
	ToolUse
	begin
	turn sync.Mutex // held by the one who ends or adopts it; guards done
	done bool       // the end is durable
}

// begin is the begin of a run or use. Before ready is closed nobody but who begins it knows more
// than its id; err says that it failed.
type begin struct {
	ready chan struct{}
	err   error
}

func newBegin() begin { return begin{ready: make(chan struct{})} }

// wait returns when the begin succeeded or failed.
func (b *begin) wait(ctx context.Context) error {
	select {
	case <-b.ready:
		return b.err
	default:
	}
	select {
	case <-b.ready:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Option changes what a Controller works with.
type Option func(*Controller)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(c *Controller) { c.clock = now } }

// WithEdge sets how to wait for a time at which a tool use that is told by its process begins or ends:
// one that lies on no start time of a child (attribution.NextTick). Without it they begin and end
// at once.
func WithEdge(wait func(context.Context) time.Time) Option {
	return func(c *Controller) { c.edge = wait }
}

// WithProcesses replaces ReadProcess.
func WithProcesses(of func(pid int) (Process, uint32, error)) Option {
	return func(c *Controller) { c.processOf = of }
}

// New returns a Controller with what is open in store. Processes that are gone are let go.
func New(store Store, log *slog.Logger, opts ...Option) (*Controller, error) {
	c := &Controller{
		store: store, log: log, processOf: ReadProcess, clock: time.Now,
		sessions: map[string]*live{}, cgroups: map[string]*use{}, processes: map[int][]*use{}, sweepAt: minSweep,
	}
	for _, o := range opts {
		o(c)
	}
	if c.edge == nil {
		c.edge = func(context.Context) time.Time { return c.clock() }
	}
	if err := c.load(context.Background()); err != nil {
		return nil, fmt.Errorf("load the sessions: %w", err)
	}
	return c, nil
}

func newLive(s Session) *live {
	return &live{Session: s, executions: map[string]*run{}, forks: map[string][]string{}, uses: map[string]*use{}, window: map[string]*use{}}
}

// now returns the time in UTC, each one later than the one before: it is the order of beginning.
func (c *Controller) now() time.Time { return c.notBefore(c.clock()) }

// turningPoint returns the time at which t begins or ends. What belongs to a tool use that has a
// process and no cgroup is told by start times, which the kernel counts in ticks.
func (c *Controller) turningPoint(ctx context.Context, t ToolUse) time.Time {
	if t.Process != nil && t.Cgroup == "" && t.Origin == OriginAPI {
		return c.notBefore(c.edge(ctx))
	}
	return c.now()
}

func (c *Controller) notBefore(t time.Time) time.Time {
	for {
		last := c.lastTime.Load()
		next := max(t.UnixNano(), last+1)
		if c.lastTime.CompareAndSwap(last, next) {
			return time.Unix(0, next).UTC()
		}
	}
}
