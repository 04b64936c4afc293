package server

import (
	"context"
	"fmt"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (s *Server) listSessions(r request) (any, error) {
	all, err := s.Sessions.Sessions(r.Context(), r.caller)
	if err != nil {
		return nil, err
	}
	return page(r, all, wireSession)
}

func (s *Server) showSession(r request) (any, error) {
	v, err := s.Sessions.Session(r.Context(), r.caller, r.PathValue("id"))
	return wireSession(v), err
}

func (s *Server) deleteSession(r request) (any, error) {
	return struct{}{}, s.Sessions.DeleteSession(r.Context(), r.caller, r.PathValue("id"))
}

func (s *Server) listExecutions(r request) (any, error) {
	id, err := s.sessionID(r, r.query("session"), "")
	if err != nil {
		return nil, err
	}
	all, err := s.Sessions.Executions(r.Context(), r.caller, id)
	if err != nil {
		return nil, err
	}
	return page(r, all, wireExecution)
}

func (s *Server) beginExecution(r request) (any, error) {
	q, err := decode[ctl.ExecutionRequest](r)
	if err != nil {
		return nil, err
	}
	e, err := s.Sessions.BeginExecution(r.Context(), r.caller, session.ExecutionSpec{
		SessionID: q.SessionID, ID: q.ID, ParentID: q.ParentID, Artifacts: q.Artifacts,
	})
	return wireExecution(e), err
}

func (s *Server) showExecution(r request) (any, error) {
	e, err := s.Sessions.Execution(r.Context(), r.caller, r.query("session"), r.PathValue("id"))
	return wireExecution(e), err
}

func (s *Server) markExecution(r request) (any, error) {
	m, err := s.Sessions.MarkExecution(r.Context(), r.caller, r.query("session"), r.PathValue("id"))
	return ctl.Mark{Mark: m}, err
}

func (s *Server) endExecution(r request) (any, error) {
	q, err := decode[ctl.EndRequest](r)
	if err != nil {
		return nil, err
	}
	if !q.Status.Ended() {
		return nil, fmt.Errorf("%w status %.40q: an execution ends as COMPLETED, TRUNCATED, ERROR, INTERRUPTED, SUSPENDED, MAX_ITERATIONS or COMMAND", session.ErrInvalid, string(q.Status))
	}
	// Once asked for, an end is carried through, whether or not the caller still waits.
	ctx := context.WithoutCancel(r.Context())
	e, err := s.Sessions.EndExecution(ctx, r.caller, r.query("session"), r.PathValue("id"), q.Status)
	return wireExecution(e), err
}

// sessionID resolves which session a request means: the one it names, else that of the execution it
// names, else the caller's only one. Only what the caller may see is found.
func (s *Server) sessionID(r request, sessionID, executionID string) (string, error) {
	if sessionID != "" {
		if err := session.CheckID("session", sessionID); err != nil {
			return "", err
		}
	}
	if executionID != "" {
		e, err := s.Sessions.Execution(r.Context(), r.caller, sessionID, executionID)
		return e.SessionID, err
	}
	v, err := s.Sessions.Session(r.Context(), r.caller, sessionID)
	return v.ID, err
}
