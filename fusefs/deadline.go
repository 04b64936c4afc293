package fusefs

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends at a time. It has a timer only once somebody waits for that: most
// who are asked answer at once, and setting a timer for each costs them more than the answer.
type deadline struct {
	at time.Time

	mu     sync.Mutex // guards all below
	timed  context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*deadline)(nil)

func within(d time.Duration) *deadline { return &deadline{at: time.Now().Add(d)} }

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }
func (d *deadline) Value(any) any               { return nil }

func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(context.Background(), d.at)
	}
	return d.timed.Done()
}

func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.timed != nil:
		return d.timed.Err()
	case time.Now().Before(d.at):
		return nil
	}
	return context.DeadlineExceeded
}

// over gives the timer back: nobody waits any more.
func (d *deadline) over() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
