package session

import "time"

// maxPast is how many ended tool uses of a session are remembered by when they were open.
const maxPast = 4096

// past holds the ended tool uses of a session that were begun through the API.
type past struct {
	uses  []ToolUse // the last ones, in order of ending but for those from before a restart
	first time.Time // when the first of all began
}

func (p *past) add(t ToolUse) {
	if t.Origin != OriginAPI || t.EndedAt == nil {
		return
	}
	if len(p.uses) == 0 || t.BeganAt.Before(p.first) {
		p.first = t.BeganAt
	}
	if len(p.uses) >= maxPast {
		p.uses = append([]ToolUse(nil), p.uses[maxPast/2:]...)
	}
	p.uses = append(p.uses, t)
}

// WasOpen returns the tool uses of a session, begun through the API and ended now, that were open
// at some moment from one time to another. Of very many the oldest are forgotten. It answers from memory.
func (c *Controller) WasOpen(sessionID string, from, to time.Time) []ToolUse {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.sessions[sessionID]
	if l == nil || to.Before(l.past.first) {
		return nil
	}
	var open []ToolUse
	for _, t := range l.past.uses {
		if !t.BeganAt.After(to) && !t.EndedAt.Before(from) {
			open = append(open, t)
		}
	}
	return open
}
