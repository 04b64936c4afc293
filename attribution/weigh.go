package attribution

import (
	"slices"
	"time"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

// answer weighs what was found by the rules, the first that answers wins.
func (r *Resolver) answer(task *proc.Task, l line, h hearsay, now time.Time) session.Attribution {
	switch {
	case l.sure != nil:
		return r.finish(named(session.Exact, l.source, *l.sure, now), l.sure, h)
	case len(l.maybe) > 0:
		return r.finish(ambiguous(ids(l.maybe)), nil, h)
	case h.declares() && !slices.Contains(l.stale, h.toolUse) && !slices.Contains(l.foreign, h.toolUse):
		return r.declare(h, now)
	case len(l.foreign) > 0 || h.declares():
		// It is known to be somebody else's, or what it declares does not count: what else is open
		// has nothing to do with it.
		return r.finish(none(), nil, h)
	case len(l.denied) > 0:
		return r.notThose(l.denied, h)
	case h.unsure, h.invalid && h.toolUse != "":
		return r.unnamed(h)
	}
	return r.window(task, h, now)
}

// declare answers by what the environments say.
func (r *Resolver) declare(h hearsay, now time.Time) session.Attribution {
	t, err := r.registry.Declared(r.session, Declaration{
		ToolUseID: h.toolUse, ExecutionID: h.execution, Artifact: h.artifact, Process: h.by,
	})
	if err != nil {
		r.log.Debug("declared tool use was not taken", logToolUse, h.toolUse, logError, err)
		return r.finish(none(), nil, h)
	}
	return r.finish(named(session.Declared, session.SourceEnvironment, t, now), &t, h)
}

// window answers by what is open, for a caller of which nothing else is known.
func (r *Resolver) window(task *proc.Task, h hearsay, now time.Time) session.Attribution {
	open := r.registry.Window(r.session)
	if len(open) != 1 {
		return r.unnamed(h)
	}
	// The id is in use, so this begins nothing: it tells where the tool use collects.
	t, err := r.registry.Declared(r.session, Declaration{ToolUseID: open[0]})
	if err != nil || t.BeganAt.After(now) {
		return r.finish(ambiguous(open), nil, h)
	}
	if others := r.leftoverOf(task); len(others) > 0 {
		return r.finish(ambiguous(append(others, t.ID)), nil, h)
	}
	return r.finish(named(session.Window, session.SourceWindow, t, now), &t, h)
}

// leftoverOf returns the ended tool uses that the caller may be left from, though only one other is open: those that
// were open when it or an ancestor of it started.
func (r *Resolver) leftoverOf(task *proc.Task) []string {
	offset, _ := r.clock.now()
	others := r.startedIn(task.Process, offset)
	for _, a := range task.Ancestors() {
		others = append(others, r.startedIn(a.Process, offset)...)
	}
	return others
}

// startedIn returns the ended tool uses that may have been open when p started.
func (r *Resolver) startedIn(p session.Process, offset int64) []string {
	at := int64(p.Start) * int64(tick)
	low, high := min(offset, r.clock.offset), max(offset, r.clock.offset)
	from, to := time.Unix(0, at+low).Add(-unseen), time.Unix(0, at+high).Add(tick+unseen)
	return ids(r.clock.byChild(p.Start, r.registry.WasOpen(r.session, from, to), false).possible)
}

// notThose answers for a caller that descends from a process of tool uses, but was started in none of
// them. It may be any other's that is open, also where that is only one: what was started between two
// tool uses is as often the runtime's own.
func (r *Resolver) notThose(denied []string, h hearsay) session.Attribution {
	open := slices.DeleteFunc(slices.Clone(r.registry.Window(r.session)), func(id string) bool {
		return slices.Contains(denied, id)
	})
	if len(open) == 0 {
		return r.finish(none(), nil, h)
	}
	return r.finish(ambiguous(open), nil, h)
}

// unnamed answers for a caller that may be any of the open tool uses', or nobody's: also where only one is open.
func (r *Resolver) unnamed(h hearsay) session.Attribution {
	if open := r.registry.Window(r.session); len(open) > 0 {
		return r.finish(ambiguous(open), nil, h)
	}
	return r.finish(none(), nil, h)
}

// finish fills in what does not depend on the rule: where the change is collected, what the caller
// wants of it, and what it declared where that is not the answer. An environment that names another tool use
// than the answer does is not believed about its execution either; the intent is the writer's own.
func (r *Resolver) finish(a session.Attribution, t *session.ToolUse, h hearsay) session.Attribution {
	if h.declares() && h.toolUse != a.ToolUseID {
		a.DeclaredToolUseID = h.toolUse
		if a.ToolUseID != "" {
			h.execution = ""
		}
	}
	a.Artifact = h.artifact
	if a.Artifact == nil && t != nil {
		a.Artifact = t.Artifact
	}
	e, err := r.registry.Execution(r.session, h.execution, t)
	if err != nil {
		r.log.Error("no execution to collect into", logToolUse, a.ToolUseID, logError, err)
		return a
	}
	a.ExecutionID = e.ID
	return a
}

func named(s session.Sureness, by session.Source, t session.ToolUse, now time.Time) session.Attribution {
	return session.Attribution{Sureness: s, Source: by, ToolUseID: t.ID, Late: endedBefore(t, now)}
}

func none() session.Attribution { return session.Attribution{Sureness: session.None} }

func ambiguous(candidates []string) session.Attribution {
	list := slices.Clone(candidates)
	slices.Sort(list)
	list = slices.Compact(list)
	return session.Attribution{Sureness: session.Ambiguous, Candidates: list[:min(len(list), maxCandidates)]}
}

func ids(list []session.ToolUse) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.ID
	}
	return out
}
