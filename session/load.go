package session

import (
	"context"
	"slices"
)

var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *Controller) load(ctx context.Context) error {
	all, err := c.store.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		l := newLive(s)
		l.loaded, l.forksDue = true, true
		c.sessions[s.ID] = l
		if err := c.loadSession(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) loadSession(ctx context.Context, l *live) error {
	executions, err := c.store.OpenExecutions(ctx, l.ID)
	if err != nil {
		return err
	}
	for _, e := range executions {
		c.notEarlier(e.BeganAt.UnixNano())
		l.executions[e.ID] = &run{Execution: e, begin: begin{ready: ready}}
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

// learnForks reads which executions of a session that was loaded are forks of which. It is done once,
// when the session is mounted or first asked about forks: a start must not read all that ever was.
func (c *Controller) learnForks(ctx context.Context, l *live) error {
	c.mu.RLock()
	due := l.forksDue
	c.mu.RUnlock()
	if !due {
		return nil
	}
	all, err := c.store.Executions(ctx, l.ID)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	forks := map[string][]string{}
	for _, e := range all {
		c.notEarlier(e.BeganAt.UnixNano())
		if e.ParentID != "" {
			forks[e.ParentID] = append(forks[e.ParentID], e.ID)
		}
	}
	for parent, begun := range l.forks { // those that began meanwhile are the last
		for _, id := range begun {
			if !slices.Contains(forks[parent], id) {
				forks[parent] = append(forks[parent], id)
			}
		}
	}
	l.forks, l.forksDue = forks, false
	return nil
}

// notEarlier keeps the order of beginning where the clock was set back.
func (c *Controller) notEarlier(t int64) { c.lastTime.Store(max(c.lastTime.Load(), t)) }

// maxRebound is how many ended tool uses of a session are bound again after a restart, the last ones.
const maxRebound = 4096

// rebind binds the ended tool uses of a session that was loaded to their cgroups and to those of
// their processes that live on, so that a process that outlived its tool use and the daemon keeps its
// attribution. It is done once, when the session is opened: sessions without mount need none.
func (c *Controller) rebind(ctx context.Context, l *live) error {
	c.mu.Lock()
	due := l.loaded
	l.loaded = false
	c.mu.Unlock()
	if !due {
		return nil
	}
	if err := c.learnForks(ctx, l); err != nil {
		return err
	}
	all, err := c.store.ToolUses(ctx, l.ID, false)
	if err != nil {
		return err
	}
	for _, t := range all[max(0, len(all)-maxRebound):] {
		c.mu.Lock()
		l.past.add(t)
		c.mu.Unlock()
		if t.Open() || t.Cgroup == "" && t.Process == nil {
			continue
		}
		lives := c.alive(t.Process)
		c.mu.Lock()
		if _, taken := c.cgroups[t.Cgroup]; !taken {
			c.bind(&use{ToolUse: t, begin: begin{ready: ready}, done: true}, lives)
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uses := range c.processes {
		slices.SortStableFunc(uses, func(a, b *use) int { return a.BeganAt.Compare(b.BeganAt) })
	}
	return nil
}
