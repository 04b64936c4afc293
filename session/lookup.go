package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func noSession(id string) error { return fmt.Errorf("session %.200q: %w", id, ErrNotFound) }

// visible reports whether the session is there for the caller. mu is held.
func (l *live) visible(caller Caller) bool {
	return l.known() && !l.deleting && caller.MaySee(l.Owner)
}

// wanted is what a session is looked for by, where it is not named. The zero value is any.
type wanted struct {
	what string
	in   func(l *live) (bool, error)
}

// find returns the session of that id, or for "" the only one of the caller's that has what is wanted. Where several do and only one of them has a live mount, that one is
// meant.
func (c *Controller) find(caller Caller, id string, w wanted) (*live, error) {
	if id != "" {
		c.mu.RLock()
		defer c.mu.RUnlock()
		if l := c.sessions[id]; l != nil && l.visible(caller) {
			return l, nil
		}
		return nil, noSession(id)
	}
	fit, err := c.fitting(caller, w.in)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	mounted := slices.DeleteFunc(slices.Clone(fit), func(l *live) bool { return l.collector == nil })
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(mounted) == 1:
		return mounted[0], nil
	case len(fit) == 0 && w.what != "":
		return nil, fmt.Errorf("%s: %w in any session of yours", w.what, ErrNotFound)
	case len(fit) == 0:
		return nil, fmt.Errorf("session: %w: there is none that fits", ErrNotFound)
	}
	return nil, fmt.Errorf("%w: %s: name one with --session", ErrConflict, names(fit))
}

func names(sessions []*live) string {
	const some = 5
	var ids []string
	for _, l := range sessions[:min(some, len(sessions))] {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	list := strings.Join(ids, ", ")
	if len(sessions) > some {
		list += ", …"
	}
	return fmt.Sprintf("%d sessions fit (%s)", len(sessions), list)
}

func (c *Controller) fitting(caller Caller, has func(l *live) (bool, error)) ([]*live, error) {
	c.mu.RLock()
	var fit []*live
	for _, l := range c.sessions {
		if l.visible(caller) {
			fit = append(fit, l)
		}
	}
	c.mu.RUnlock()
	if has == nil {
		return fit, nil
	}
	var failed error
	fit = slices.DeleteFunc(fit, func(l *live) bool {
		yes, err := has(l)
		failed = errors.Join(failed, err)
		return !yes
	})
	return fit, failed
}

// withExecution answers for find whether a session has the execution.
func (c *Controller) withExecution(ctx context.Context, id string) wanted {
	return wanted{fmt.Sprintf("execution %.200q", id), func(l *live) (bool, error) {
		_, err := c.execution(ctx, l, id)
		return err == nil, ignoreMissing(err)
	}}
}

// withToolUse answers for find whether a session has the tool use.
func (c *Controller) withToolUse(ctx context.Context, id string) wanted {
	return wanted{fmt.Sprintf("tool use %.200q", id), func(l *live) (bool, error) {
		_, err := c.toolUse(ctx, l, id)
		return err == nil, ignoreMissing(err)
	}}
}

func ignoreMissing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// execution returns an execution of l, open or ended.
func (c *Controller) execution(ctx context.Context, l *live, id string) (Execution, error) {
	if r := c.runOf(l, id); r != nil && r.wait(ctx) == nil {
		return c.executionOf(r), nil
	}
	e, err := c.store.Execution(ctx, l.ID, id)
	if err != nil {
		return Execution{}, fmt.Errorf("session %s: %w", l.ID, err)
	}
	return e, nil
}

func (c *Controller) runOf(l *live, id string) *run {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return l.executions[id]
}

func (c *Controller) executionOf(r *run) Execution {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return r.Execution
}

// toolUse returns a tool use of l, open or ended.
func (c *Controller) toolUse(ctx context.Context, l *live, id string) (ToolUse, error) {
	if u := c.useOf(l, id); u != nil && u.wait(ctx) == nil {
		return c.valueOf(u), nil
	}
	c.mu.RLock()
	t, known := l.ended[id]
	c.mu.RUnlock()
	if known {
		return t, nil
	}
	t, err := c.store.ToolUse(ctx, l.ID, id)
	if err != nil {
		return ToolUse{}, fmt.Errorf("session %s: %w", l.ID, err)
	}
	return t, nil
}

func (c *Controller) useOf(l *live, id string) *use {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return l.uses[id]
}

func (c *Controller) valueOf(u *use) ToolUse {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return u.ToolUse
}
