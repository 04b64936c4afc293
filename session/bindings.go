package session

import (
	"fmt"
	"slices"
)

const (
	minSweep     = 1024
	maxIntervals = 1024    // tool uses kept for one long-lived process
	maxCgroups   = 1 << 16 // cgroups kept, those of ended tool uses included
	maxRecent    = 1024    // ended tool uses remembered by id in each session
)

// ByCgroup returns the tool use that the cgroup at path was made for, open or ended, of any
// session, until ForgetCgroup.
func (c *Controller) ByCgroup(path string) (ToolUse, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	u, ok := c.cgroups[path]
	if !ok {
		return ToolUse{}, false
	}
	return u.ToolUse, true
}

// ByProcess returns the tool uses that were begun with the process, in order of beginning, open and
// ended ones, of any session. Of a process with very many the oldest ended ones are not kept.
func (c *Controller) ByProcess(pid int) []ToolUse {
	c.mu.RLock()
	defer c.mu.RUnlock()
	uses := c.processes[pid]
	if len(uses) == 0 {
		return nil
	}
	all := make([]ToolUse, len(uses))
	for i, u := range uses {
		all[i] = u.ToolUse
	}
	return all
}

// ForgetCgroup is told that the cgroup at path is gone.
func (c *Controller) ForgetCgroup(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cgroups, path)
}

// bind makes u known by its cgroup and, where withProcess, by its process. mu is held. What a
// process declared about itself binds nobody: that is weaker evidence.
func (c *Controller) bind(u *use, withProcess bool) {
	if u.Origin != OriginAPI {
		return
	}
	if u.Cgroup != "" {
		c.makeRoom()
		c.cgroups[u.Cgroup] = u
	}
	if u.Process == nil || !withProcess {
		return
	}
	pid := u.Process.PID
	uses := slices.DeleteFunc(c.processes[pid], func(o *use) bool { return o.Process.Start != u.Process.Start })
	if len(uses) >= maxIntervals {
		if i := slices.IndexFunc(uses, func(o *use) bool { return !o.Open() }); i >= 0 {
			uses = slices.Delete(uses, i, i+1)
		}
	}
	c.processes[pid] = append(uses, u)
}

// makeRoom drops cgroups of ended tool uses where there are too many. mu is held.
func (c *Controller) makeRoom() {
	if len(c.cgroups) < maxCgroups {
		return
	}
	for path, u := range c.cgroups {
		if !u.Open() {
			delete(c.cgroups, path)
		}
	}
}

// cgroupFree reports that no other open tool use has the cgroup. mu is held.
func (c *Controller) cgroupFree(path string) error {
	if u, ok := c.cgroups[path]; ok && path != "" && u.Open() {
		return fmt.Errorf("%w: the cgroup %s belongs to another open tool use", ErrConflict, path)
	}
	return nil
}

// unbindSession forgets the bindings of a session that is removed. mu is held.
func (c *Controller) unbindSession(id string) {
	for path, u := range c.cgroups {
		if u.SessionID == id {
			delete(c.cgroups, path)
		}
	}
	for pid, uses := range c.processes {
		c.keep(pid, slices.DeleteFunc(uses, func(u *use) bool { return u.SessionID == id }))
	}
}

func (c *Controller) keep(pid int, uses []*use) {
	if len(uses) == 0 {
		delete(c.processes, pid)
		return
	}
	c.processes[pid] = uses
}

// alive reports whether p still is the process of its pid.
func (c *Controller) alive(p *Process) bool {
	if p == nil {
		return false
	}
	now, _, err := c.processOf(p.PID)
	return err == nil && now == *p
}

// sweep drops processes that are gone, when there are many: it is paid for by those who add some.
func (c *Controller) sweep() {
	c.mu.RLock()
	var all []Process
	if len(c.processes) > c.sweepAt {
		for _, uses := range c.processes {
			all = append(all, *uses[0].Process)
		}
	}
	c.mu.RUnlock()
	if all == nil {
		return
	}
	gone := slices.DeleteFunc(all, func(p Process) bool { return c.alive(&p) })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range gone {
		c.keep(p.PID, slices.DeleteFunc(c.processes[p.PID], func(u *use) bool { return *u.Process == p }))
	}
	c.sweepAt = max(minSweep, 2*len(c.processes))
}

// recent remembers some ended tool uses, so that a process that goes on under an ended id costs
// an index read once.
type recent map[string]ToolUse

func (r *recent) add(t ToolUse) {
	if *r == nil || len(*r) >= maxRecent {
		*r = recent{}
	}
	(*r)[t.ID] = t
}
