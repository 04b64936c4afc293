package attribution

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const (
	defaultTasks  = 256  // tasks whose descriptors are kept
	maxCandidates = 32   // stored with an ambiguous answer
	maxNoted      = 1024 // processes remembered for having been logged
)

// Keys of log records.
const (
	logPID     = "pid"
	logToolUse = "toolUse"
	logSession = "session"
	logError   = "err"
)

// Resolver answers for the mount of one session. It is safe for concurrent use.
type Resolver struct {
	session  string
	registry Registry
	log      *slog.Logger
	clock    clock
	readers  *readers
	deadline time.Duration
	table    *proc.Table // nil where /proc is not the one of this process's pid namespace

	mu    sync.Mutex // guards noted
	noted map[session.Process]struct{}
}

// Option changes a Resolver.
type Option func(*Resolver)

// WithTasks sets how many tasks are cached, each with up to three descriptors.
func WithTasks(n int) Option { return func(r *Resolver) { r.table = proc.NewTable(n) } }

// WithDeadline sets how long one answer may wait for environments.
func WithDeadline(d time.Duration) Option { return func(r *Resolver) { r.deadline = d } }

// New returns the resolver of a session's mount. It is closed when the mount is gone.
func New(sessionID string, registry Registry, log *slog.Logger, opts ...Option) *Resolver {
	r := &Resolver{
		session: sessionID, registry: registry, log: log.With(logSession, sessionID),
		clock: newClock(), readers: newReaders(), deadline: deadline,
		table: proc.NewTable(defaultTasks), noted: make(map[session.Process]struct{}),
	}
	for _, o := range opts {
		o(r)
	}
	if !proc.Self() {
		r.log.Warn("/proc is not the one of this pid namespace: no writer can be told from another; mount a new one, or run in the host's pid namespace")
		r.table = nil
	}
	return r
}

// Close lets go of the descriptors that are kept.
func (r *Resolver) Close() {
	if r.table != nil {
		r.table.Close()
	}
}

// Attribute says which tool use is behind the thread pid, which is blocked in the call that is
// answered. It always has an answer, in a time that ctx and the deadline bound.
func (r *Resolver) Attribute(ctx context.Context, pid, _ uint32) session.Attribution {
	now := time.Now()
	task, cgroup, err := r.look(pid)
	if err != nil {
		return r.unnamed(hearsay{})
	}
	defer task.Release()
	l := r.follow(task, cgroup, now)
	count := math.MaxInt
	if l.sure != nil {
		count = l.within
	}
	return r.answer(task, l, r.listen(ctx, task, count), now)
}

// look finds the caller's task. The kernel tells no pid for a caller outside of this process's pid
// namespace.
func (r *Resolver) look(pid uint32) (*proc.Task, string, error) {
	if pid == 0 || r.table == nil {
		return nil, "", proc.ErrGone
	}
	return r.table.Look(int(pid))
}
