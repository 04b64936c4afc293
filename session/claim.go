package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
)

// maxDeclared is how many declared tool uses may be open in a session: any process can make up ids.
const maxDeclared = 10_000

// errRetry says that what was decided on has changed meanwhile.
var errRetry = errors.New("changed meanwhile")

// errEnded is what beginning an ended tool use fails with.
type errEnded struct{ ToolUse }

func (e errEnded) Error() string {
	return fmt.Sprintf("%v: tool use %q has already ended, and an id is never used again", ErrConflict, e.ID)
}

func (e errEnded) Unwrap() error { return ErrConflict }

// claim begins the tool use t where its id was never used, and otherwise returns the one that is
// open (mine is false). An ended one is errEnded. t.ExecutionID "" is the current execution. enter may
// be nil.
func (c *Controller) claim(ctx context.Context, l *live, t ToolUse, enter func() string) (u *use, mine bool, err error) {
	for {
		if u := c.useOf(l, t.ID); u != nil {
			if err := u.wait(ctx); err == nil {
				return u, false, c.endedError(u)
			} else if ctx.Err() != nil {
				return nil, false, err
			}
		}
		// To look first spares an execution that would begin for a late write only.
		if err := c.neverUsed(ctx, l, t.ID); err != nil {
			return nil, false, err
		}
		r, err := c.runFor(ctx, l, t.ExecutionID)
		if err != nil {
			return nil, false, err
		}
		u, err := c.reserveUse(l, r, t)
		if errors.Is(err, errRetry) {
			continue
		}
		if err == nil {
			err = c.beginUse(ctx, l, u, enter)
		}
		return u, err == nil, err
	}
}

func (c *Controller) endedError(u *use) error {
	if t := c.valueOf(u); !t.Open() {
		return errEnded{t}
	}
	return nil
}

// neverUsed looks for an ended tool use of that id.
func (c *Controller) neverUsed(ctx context.Context, l *live, id string) error {
	c.mu.RLock()
	t, known := l.ended[id]
	c.mu.RUnlock()
	if known {
		return errEnded{t}
	}
	t, err := c.store.ToolUse(ctx, l.ID, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("begin tool use %q: %w", id, err)
	case t.Open():
		return nil // it is being begun this moment: memory decides
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.ended.add(t)
	return errEnded{t}
}

// reserveUse takes the id in memory, as long as r is open.
func (c *Controller) reserveUse(l *live, r *run, t ToolUse) (*use, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.deleting:
		return nil, noSession(l.ID)
	case l.uses[t.ID] != nil || !r.open():
		return nil, errRetry
	case t.Origin == OriginEnvironment && l.declared >= maxDeclared:
		return nil, fmt.Errorf("%w: session %s has %d declared tool uses open, no more are begun", ErrConflict, l.ID, l.declared)
	}
	if err := c.cgroupFree(t.Cgroup); err != nil {
		return nil, err
	}
	t.ExecutionID = r.ID
	if t.BeganAt.IsZero() {
		t.BeganAt = c.now()
	}
	u := &use{ToolUse: t, begin: newBegin()}
	l.uses[t.ID] = u
	if t.Origin == OriginEnvironment {
		l.declared++ // counted from here on, so that many at once keep to the limit
	}
	return u, nil
}

// beginUse puts the reserved u on disk and makes it known. The look for an ended one is made again
// because between the first and the reservation a whole life may have passed.
func (c *Controller) beginUse(ctx context.Context, l *live, u *use, enter func() string) error {
	err := c.neverUsed(ctx, l, u.ID)
	if err == nil && enter != nil {
		c.place(ctx, u, enter())
	}
	if err == nil {
		if err = c.store.PutToolUse(context.WithoutCancel(ctx), u.ToolUse); err != nil {
			err = fmt.Errorf("begin tool use %q: %w", u.ID, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(u.ready)
	if err != nil {
		u.err = err
		delete(l.uses, u.ID)
		if u.Origin == OriginEnvironment {
			l.declared--
		}
		return err
	}
	if u.Origin == OriginAPI {
		l.window[u.ID] = u
	}
	c.bind(u, true)
	return nil
}

// place gives u, which is not ready yet, the cgroup that its process was put into. It begins there.
func (c *Controller) place(ctx context.Context, u *use, cgroup string) {
	t := c.valueOf(u)
	t.Cgroup = cgroup
	t.BeganAt = c.turningPoint(ctx, t)
	c.mu.Lock()
	defer c.mu.Unlock()
	u.ToolUse = t
}

// adopt makes the declared, open u one of the API's, as t wants it. Of the execution the entries so
// far stay where they are.
func (c *Controller) adopt(ctx context.Context, l *live, u *use, t ToolUse, enter func() string) (ToolUse, error) {
	u.turn.Lock()
	defer u.turn.Unlock()
	was := c.valueOf(u)
	switch {
	case !was.Open():
		return ToolUse{}, errEnded{was}
	case was.Origin != OriginEnvironment:
		return ToolUse{}, fmt.Errorf("%w: tool use %q is already open: use another id, or end it first", ErrConflict, t.ID)
	}
	if t.Artifact == nil {
		t.Artifact = was.Artifact
	}
	if err := c.swap(ctx, l, u, &t, enter); err != nil {
		return ToolUse{}, err
	}
	if err := c.store.PutToolUse(context.WithoutCancel(ctx), t); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unadopt(l, u, was)
		return ToolUse{}, fmt.Errorf("begin tool use %q: %w", t.ID, err)
	}
	return t, nil
}

// swap makes u what t says, as long as the execution that t names is open.
func (c *Controller) swap(ctx context.Context, l *live, u *use, t *ToolUse, enter func() string) error {
	var r *run
	if t.ExecutionID != "" {
		var err error
		if r, err = c.openRun(ctx, l, t.ExecutionID); err != nil {
			return err
		}
	}
	if enter != nil {
		t.Cgroup = enter()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r != nil && !r.open() {
		return errRetry
	}
	if err := c.cgroupFree(t.Cgroup); err != nil {
		return err
	}
	if r == nil {
		t.ExecutionID = u.ExecutionID
	}
	t.BeganAt = u.BeganAt
	u.ToolUse = *t
	l.declared--
	l.window[t.ID] = u
	c.bind(u, true)
	return nil
}

// unadopt takes a swap back. mu is held.
func (c *Controller) unadopt(l *live, u *use, was ToolUse) {
	delete(l.window, u.ID)
	delete(c.cgroups, u.Cgroup)
	if u.Process != nil {
		pid := u.Process.PID
		c.keep(pid, slices.DeleteFunc(c.processes[pid], func(o *use) bool { return o == u }))
	}
	u.ToolUse = was
	l.declared++
}

// runFor returns the open execution of that id, or for "" the current one, beginning the implicit
// one where there is none.
func (c *Controller) runFor(ctx context.Context, l *live, id string) (*run, error) {
	if id != "" {
		return c.openRun(ctx, l, id)
	}
	for {
		c.mu.RLock()
		r := l.current
		c.mu.RUnlock()
		if r == nil {
			e := Execution{ID: ulid.Make().String(), SessionID: l.ID, Implicit: true, Status: Running}
			if _, err := c.beginExecution(ctx, l, e, nil); err != nil && !errors.Is(err, errRetry) {
				return nil, err
			}
			continue
		}
		if err := r.wait(ctx); err == nil {
			return r, nil
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
}

// openRun returns the open execution of that id.
func (c *Controller) openRun(ctx context.Context, l *live, id string) (*run, error) {
	if r := c.runOf(l, id); r != nil && r.wait(ctx) == nil {
		c.mu.RLock()
		defer c.mu.RUnlock()
		if r.open() {
			return r, nil
		}
	} else if _, err := c.execution(ctx, l, id); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: execution %s has already ended: begin another one", ErrConflict, id)
}
