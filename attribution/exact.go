package attribution

import (
	"strings"
	"time"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const maxCgroupDepth = 64 // components of a path that are looked at

// line is what cgroup and ancestry say about a caller.
type line struct {
	sure    *session.ToolUse
	source  session.Source
	maybe   []session.ToolUse // several could be it, or it and none: set where sure is not
	within  int               // how many ancestors lie inside sure
	denied  []string          // ids of this session that it is not, though a process they were begun with is on it
	stale   []string          // those of denied whose id in an environment says nothing either
	foreign []string          // ids of tool uses of other sessions that it lies in
}

// follow finds the innermost tool use of the resolver's session that the caller lies in.
//
// A tool use's cgroup and a process that another was begun with can enclose one another: ancestors
// that are inside the caller's innermost cgroup of a tool use are further in than it.
func (r *Resolver) follow(task *proc.Task, cgroup string, now time.Time) line {
	var l line
	inner := r.innermost(cgroup, &l)
	if l.self(r, task.Process, inner, now) {
		return l.conclude(inner)
	}
	below := task.Process
	ancestors := task.Ancestors()
	for i, at := range ancestors {
		if uses := r.begunWith(at.Process); len(uses) > 0 {
			more := l.ancestor(r, ancestors, i, below, uses, inner)
			if more == found {
				l.within = i + 1
			}
			if more != further {
				break
			}
		}
		below = at.Process
	}
	return l.conclude(inner)
}

// self weighs the tool uses that the caller's own process was begun with.
func (l *line) self(r *Resolver, p session.Process, inner *session.ToolUse, now time.Time) (done bool) {
	uses := r.begunWith(p)
	if len(uses) == 0 {
		return false
	}
	own := l.others(r.session, uses, inner, func(u []session.ToolUse) verdict { return byTime(now, u) })
	return l.weigh(byTime(now, own), own) || inner != nil && contains(uses, *inner)
}

// step is how the walk goes on after an ancestor that a tool use was begun with.
type step int

const (
	further step = iota
	found        // the answer lies here
	left         // this one is outside of the cgroup that is looked into
)

// ancestor weighs the tool uses that line[i] was begun with, below being its child on the line.
func (l *line) ancestor(r *Resolver, ancestors []proc.Ancestor, i int, below session.Process, uses []session.ToolUse, inner *session.ToolUse) step {
	up := r.up(ancestors, i)
	defer up.release()
	judge := func(u []session.ToolUse) verdict {
		if len(u) == 0 {
			return verdict{}
		}
		return r.clock.byChild(below.Start, u, up.adopts())
	}
	own := l.others(r.session, uses, inner, judge)
	if inner == nil {
		return stop(l.weigh(judge(own), own))
	}
	if len(own) > 0 {
		switch up.placed(inner.Cgroup) {
		case within:
			if l.weigh(judge(own), own) {
				return found
			}
		case unknown:
			// It has exited: it was further in than the cgroup, or it was not.
			l.maybe = append(l.maybe, judge(own).possible...)
		case outside:
			return left
		}
	}
	return stop(contains(uses, *inner))
}

func stop(yes bool) step {
	if yes {
		return found
	}
	return further
}

// others takes the tool uses of other sessions out of uses, noting those that the caller lies in, and
// the one of the cgroup that is looked into.
func (l *line) others(sessionID string, uses []session.ToolUse, inner *session.ToolUse, judge func([]session.ToolUse) verdict) []session.ToolUse {
	var own, foreign []session.ToolUse
	for _, t := range uses {
		switch {
		case t.SessionID != sessionID:
			foreign = append(foreign, t)
		case inner == nil || t.ID != inner.ID:
			own = append(own, t)
		}
	}
	for _, t := range judge(foreign).possible {
		l.foreign = append(l.foreign, t.ID)
	}
	return own
}

// weigh adds what the tool uses of one process on the line say, and reports whether that is all there
// is to know.
func (l *line) weigh(v verdict, uses []session.ToolUse) (done bool) {
	if len(v.possible) == 0 {
		l.deny(uses)
		return false
	}
	if v.certain && len(v.possible) == 1 && len(l.maybe) == 0 {
		l.sure, l.source = &v.possible[0], session.SourceAncestor
		return true
	}
	l.maybe = append(l.maybe, v.possible...)
	return v.certain
}

// deny notes the tool uses of a process in none of whose intervals the caller is. What was begun with
// a process that serves several was at most inherited by what it starts between them, so that their
// ids in an environment say nothing. Of one that serves a single tool use the environment may be
// believed: it outlived the tool use.
func (l *line) deny(uses []session.ToolUse) {
	for _, t := range uses {
		l.denied = append(l.denied, t.ID)
		if len(uses) > 1 {
			l.stale = append(l.stale, t.ID)
		}
	}
}

// conclude joins what the processes said with the innermost cgroup.
func (l line) conclude(inner *session.ToolUse) line {
	switch {
	case l.sure != nil || inner == nil:
	case len(l.maybe) > 0:
		l.maybe = append(l.maybe, *inner)
	default:
		l.sure, l.source = inner, session.SourceCgroup
	}
	return l
}

// innermost returns the tool use of this session whose cgroup is the nearest at or above path.
func (r *Resolver) innermost(path string, l *line) *session.ToolUse {
	for range maxCgroupDepth {
		if len(path) <= 1 {
			break
		}
		if t, ok := r.registry.ByCgroup(path); ok {
			if t.SessionID == r.session {
				return &t
			}
			l.foreign = append(l.foreign, t.ID)
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return nil
}

// begunWith returns the tool uses that were begun with p and no other process of its number.
func (r *Resolver) begunWith(p session.Process) []session.ToolUse {
	uses := r.registry.ByProcess(p.PID)
	for i, t := range uses {
		if t.Process == nil || *t.Process != p {
			return r.onlyOf(p, uses, i)
		}
	}
	return uses
}

// onlyOf copies what is p's: the first i are.
func (r *Resolver) onlyOf(p session.Process, uses []session.ToolUse, i int) []session.ToolUse {
	list := append([]session.ToolUse(nil), uses[:i]...)
	for _, t := range uses[i:] {
		if t.Process != nil && *t.Process == p {
			list = append(list, t)
		}
	}
	return list
}

// place is where a process is, seen from a cgroup.
type place int

const (
	unknown place = iota
	within
	outside
)

// kin is an ancestor that is asked; the zero value one that has exited.
type kin struct{ task *proc.Task }

func (r *Resolver) up(ancestors []proc.Ancestor, i int) kin {
	task, err := r.table.Ancestor(ancestors, i)
	if err != nil {
		return kin{}
	}
	return kin{task}
}

func (k kin) release() {
	if k.task != nil {
		k.task.Release()
	}
}

func (k kin) adopts() bool { return k.task == nil || k.task.Adopts() }

func (k kin) placed(path string) place {
	if k.task == nil {
		return unknown
	}
	at, err := k.task.Cgroup()
	switch {
	case err != nil:
		return unknown
	case at == path || strings.HasPrefix(at, path+"/"):
		return within
	}
	return outside
}

func contains(list []session.ToolUse, t session.ToolUse) bool {
	for _, u := range list {
		if u.ID == t.ID && u.SessionID == t.SessionID {
			return true
		}
	}
	return false
}
