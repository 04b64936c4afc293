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
	if err := session.CheckToolUseID(q.ID); err != nil {
		return spec, err
	}
	if q.Self {
		return s.selfSpec(r, spec)
	}
	return spec, mayName(r.caller, q.PID)
}

// selfSpec begins the tool use with the calling process, in a cgroup where one can be made. The
// session is resolved first: a process enters no cgroup for a session that its user cannot see.
func (s *Server) selfSpec(r request, spec session.ToolUseSpec) (session.ToolUseSpec, error) {
	if spec.PID != 0 {
		return spec, fmt.Errorf("%w tool use: it begins with the caller or with pid %d, not both", session.ErrInvalid, spec.PID)
	}
	id, err := s.sessionID(r, spec.SessionID, spec.ExecutionID)
	if err != nil {
		return spec, err
	}
	spec.SessionID, spec.PID = id, r.caller.PID
	if s.Cgroups == nil || spec.PID == 0 {
		return spec, nil
	}
	path, err := s.Cgroups.Enter(r.Context(), id, spec.ID, spec.PID)
	if err != nil {
		s.log.Debug("no cgroup for a tool use, its ancestry decides", "session", id, "error", err)
		return spec, nil
	}
	spec.Cgroup = path
	return spec, nil
}

// mayName refuses to bind a tool use to a process of another user: what that one writes would be
// said to come from the caller's tool use.
func mayName(c session.Caller, pid int) error {
	if pid == 0 {
		return nil
	}
	uid, ok := realUID(pid)
	if pid < 0 || !ok || !c.MaySee(uid) {
		return fmt.Errorf("process %d: %w", pid, session.ErrNotFound)
	}
	return nil
}

func (s *Server) endToolUse(r request) (any, error) {
	q, err := decode[ctl.ToolUseRef](r)
	if err != nil {
		return nil, err
	}
	// Once asked for, an end is carried through, whether or not the caller still waits.
	t, err := s.Sessions.EndToolUse(context.WithoutCancel(r.Context()), r.caller, q.SessionID, q.ID)
	return wireToolUse(t), err
}
