package session

import "context"

var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *Controller) load(ctx context.Context) error {
	all, err := c.store.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		l := newLive(s)
		c.sessions[s.ID] = l
		if err := c.loadSession(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) loadSession(ctx context.Context, l *live) error {
	executions, err := c.store.Executions(ctx, l.ID)
	if err != nil {
		return err
	}
	for _, e := range executions {
		c.notEarlier(e.BeganAt.UnixNano())
		if e.ParentID != "" {
			l.forks[e.ParentID] = append(l.forks[e.ParentID], e.ID)
		}
		if !e.Status.Ended() {
			l.executions[e.ID] = &run{Execution: e, begin: begin{ready: ready}}
		}
	}
	l.choose()
	toolUses, err := c.store.ToolUses(ctx, l.ID, true)
	if err != nil {
		return err
	}
	for _, t := range toolUses {
		c.notEarlier(t.BeganAt.UnixNano())
		u := &use{ToolUse: t, begin: begin{ready: ready}}
		l.uses[t.ID] = u
		if t.Origin == OriginEnvironment {
			l.declared++
		} else {
			l.window[t.ID] = u
		}
		c.bind(u, c.alive(t.Process))
	}
	return nil
}

// notEarlier keeps the order of beginning where the clock was set back.
func (c *Controller) notEarlier(t int64) { c.lastTime.Store(max(c.lastTime.Load(), t)) }
