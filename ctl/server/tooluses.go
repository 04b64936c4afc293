package server

import (
	"context"
	"fmt"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (s *Server) listToolUses(r request) (any, error) {
	id, err := s.sessionID(r, r.query("session"), "")
	if err != nil {
		return nil, err
	}
	all, err := s.Sessions.ToolUses(r.Context(), r.caller, id)
	if err != nil {
		return nil, err
	}
	return page(r, all, wireToolUse)
}

func (s *Server) beginToolUse(r request) (any, error) {
	q, err := decode[ctl.ToolUseRequest](r)
	if err != nil {
		return nil, err
	}
	spec, err := s.toolUseSpec(r, q)
	if err != nil {
		return nil, err
	}
	t, err := s.Sessions.BeginToolUse(r.Context(), r.caller, spec)
	return wireToolUse(t), err
}

func (s *Server) toolUseSpec(r request, q ctl.ToolUseRequest) (session.ToolUseSpec, error) {
	spec := session.ToolUseSpec{
		SessionID: q.SessionID, ExecutionID: q.ExecutionID, ID: q.ID, Artifact: q.Artifact, PID: q.PID,
	}
	if !q.Self {
		return spec, nil
	}
	if q.PID != 0 {
		return spec, fmt.Errorf("%w tool use: it begins with the caller or with pid %d, not both", session.ErrInvalid, q.PID)
	}
	if spec.PID = r.caller.PID; spec.PID != 0 && s.Cgroups != nil {
		spec.Enter = func(ctx context.Context, sessionID string) (string, error) {
			return s.Cgroups.Enter(ctx, sessionID, spec.ID, spec.PID)
		}
	}
	return spec, nil
}

func (s *Server) endToolUse(r request) (any, error) {
	q, err := decode[ctl.ToolUseRef](r)
	if err != nil {
		return nil, err
	}
	if err := session.CheckToolUseID(q.ID); err != nil {
		return nil, err
	}
	// Once asked for, an end is carried through, whether or not the caller still waits.
	t, err := s.Sessions.EndToolUse(context.WithoutCancel(r.Context()), r.caller, q.SessionID, q.ID)
	return wireToolUse(t), err
}
