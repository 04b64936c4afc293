package artifact

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Sessions is what the collector asks about executions and tool uses. The session controller
// implements it. The methods answer from memory or with one index read. The controller must not
// hold a lock that they take while it calls a session.Collector.
type Sessions interface {
	// ToolUseOpen reports whether the tool use was begun and has not ended.
	ToolUseOpen(sessionID, id string) bool

	// ExecutionOf returns an execution, false where there is none of that id.
	ExecutionOf(sessionID, id string) (session.Execution, bool)

	// Forks returns the ids of all executions below one: its forks, theirs, and so on.
	Forks(sessionID, executionID string) []string

	// CollectInto returns the execution that a change by hand is collected in: the tool use's, for "" the
	// current one, beginning the implicit one where there is none. session.ErrNotFound where the tool
	// use was never begun.
	CollectInto(sessionID, toolUseID string) (executionID string, err error)
}

// RecorderConfig is what a Recorder is made of. All fields but the times are required.
type RecorderConfig struct {
	SessionID string
	Store     Store
	Tree      Tree
	Sessions  Sessions
	Log       *slog.Logger

	Settle time.Duration // how long an end waits for releases in flight; 0 for 200 ms
	Batch  time.Duration // how long changes are gathered before they are written; 0 for 50 ms
	Quiet  time.Duration // how long after its last change a late entry of an ended execution becomes final; 0 for 2 s
}

func (c RecorderConfig) withDefaults() RecorderConfig {
	orElse := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	orElse(&c.Settle, 200*time.Millisecond)
	orElse(&c.Batch, 50*time.Millisecond)
	orElse(&c.Quiet, 2*time.Second)
	c.Log = c.Log.With(keySession, c.SessionID)
	return c
}

// Recorder records what happens in one session's mount and is its session.Collector. Methods are
// safe for concurrent use.
//
// Events take three steps: Record appends to the queue; the queue is applied to the open entries
// in memory, which never waits for a disk; what changed is written to the Store in batches. A slow
// Store therefore delays rows and never events, and what waits for it is bounded by the open
// entries: each is written once with what stands then.
//
// What a renamed directory carries along is looked up in the Store by whoever writes rows: see dirMove.
//
// Lock order: storing, then mu, then queue.mu. Record takes the last only.
type Recorder struct {
	sessionID string
	cfg       RecorderConfig
	log       *slog.Logger
	rules     *Rules
	queue     queue

	storing sync.Mutex // serialises everything that reads and then writes rows; guards seq, versions
	seq     uint64
	version versions

	mu              sync.Mutex // guards all below; never held while a disk is waited for
	handles         Handles    // nil until there is a mount
	open            openSet
	dirty           map[*openEntry]struct{}
	pending         pendingRows
	nameless        []*openFile // oldest first
	finals          finals
	endedTools      map[string]bool
	endedExecutions map[string]bool

	applied chan struct{} // the writer has something to do
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// NewRecorder loads what the session's last recorder left open, compares it with the files, makes
// final what ended in between, and starts recording. Close it.
func NewRecorder(ctx context.Context, cfg RecorderConfig) (*Recorder, error) {
	cfg = cfg.withDefaults()
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{
		sessionID: cfg.SessionID, cfg: cfg, log: cfg.Log, rules: NewRules(cfg.Tree, cfg.Log),
		queue: newQueue(), version: versions{},
		dirty: map[*openEntry]struct{}{}, finals: newFinals(time.Now()),
		endedTools: map[string]bool{}, endedExecutions: map[string]bool{},
		applied: make(chan struct{}, 1), cancel: cancel,
	}
	r.open = newOpenSet(r.changed, r.dropped)
	if err := r.load(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("recorder of session %s: %w", cfg.SessionID, err)
	}
	r.done.Go(func() { r.applyLoop(run) })
	r.done.Go(func() { r.writeLoop(run) })
	return r, nil
}

// SetHandles tells the recorder of the mount's open files, once there is a mount.
func (r *Recorder) SetHandles(h Handles) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles = h
}

// Close writes what is pending and stops. Open entries stay open in the Store: the session's next
// recorder finds them.
func (r *Recorder) Close(ctx context.Context) error {
	r.cancel()
	r.done.Wait()
	if err := r.Flush(ctx); err != nil {
		return fmt.Errorf("close recorder: %w", err)
	}
	return r.cfg.Store.Sync()
}

// Record takes one event. It never blocks and keeps no reference to the caller's memory beyond
// the event's own values.
func (r *Recorder) Record(e change.Event) { r.queue.push(e) }

// Pending returns how many events, changed entries and other rows are not in the Store yet.
func (r *Recorder) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.len() + len(r.dirty) + r.pending.len()
}

// Flush applies all events recorded so far and writes their rows. It does not sync.
func (r *Recorder) Flush(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	return r.flush(ctx)
}

// drain applies the queue. It may be called by anybody at any time: events are applied once and in
// order.
func (r *Recorder) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drainLocked()
}

func (r *Recorder) drainLocked() {
	events := r.queue.take()
	for i := range events {
		r.apply(events[i])
	}
	r.queue.giveBack(events)
}

func (r *Recorder) applyLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.queue.signal:
			r.drain()
			signal(r.applied)
		}
	}
}

// signal wakes the reader of a channel of capacity one, if it is not woken already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *Recorder) now() time.Time { return time.Now().UTC() }
