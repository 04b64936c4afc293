package main

import (
	"context"

	"aimon.at/vfsd/session"
)

type asked struct{ *session.Controller }

func (a asked) LookupExecution(s, id string) (session.Execution, bool) { return a.ExecutionOf(s, id) }
func (a asked) CollectInto(s, t string) (string, error) {
	var tu *session.ToolUse
	if t != "" {
		all, err := a.ToolUses(context.Background(), session.Caller{Privileged: true}, s)
		if err != nil {
			return "", err
		}
		for _, u := range all {
			if u.ID == t {
				tu = &u
			}
		}
		if tu == nil {
			return "", session.ErrNotFound
		}
	}
	e, err := a.CollectIn(s, "", tu)
	return e.ID, err
}
