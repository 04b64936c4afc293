package ctl

import (
	"context"
	"net/http"

	"aimon.at/vfsd/session"
)

// Where a sessionID may be "", it stands for the only one of the caller's sessions that fits.

// Sessions returns the caller's sessions, in order of beginning.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	return list[Session](ctx, c, "/v1/sessions", nil)
}

// DeleteSession removes a session with all its records and tokens.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	p, err := element("sessions", "session", id)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodDelete, p, nil, nil, nil)
}

// BeginExecution begins an execution.
func (c *Client) BeginExecution(ctx context.Context, r ExecutionRequest) (Execution, error) {
	return send[Execution](ctx, c, http.MethodPost, "/v1/executions", nil, r)
}

// Executions returns a session's executions, in order of beginning.
func (c *Client) Executions(ctx context.Context, sessionID string) ([]Execution, error) {
	return list[Execution](ctx, c, "/v1/executions", values("session", sessionID))
}

// Execution returns an execution with its artifacts.
func (c *Client) Execution(ctx context.Context, sessionID, id string) (ExecutionReport, error) {
	p, err := element("executions", "execution", id)
	if err != nil {
		return ExecutionReport{}, err
	}
	e, err := get[Execution](ctx, c, p, values("session", sessionID))
	if err != nil {
		return ExecutionReport{}, err
	}
	return c.report(ctx, e)
}

// MarkExecution ends an iteration and returns its mark.
func (c *Client) MarkExecution(ctx context.Context, sessionID, id string) (Mark, error) {
	p, err := element("executions", "execution", id)
	if err != nil {
		return Mark{}, err
	}
	return send[Mark](ctx, c, http.MethodPost, p+"/mark", values("session", sessionID), nil)
}

// EndExecution ends an execution and returns it with its artifacts.
func (c *Client) EndExecution(ctx context.Context, sessionID, id string, status session.Status) (ExecutionReport, error) {
	p, err := element("executions", "execution", id)
	if err != nil {
		return ExecutionReport{}, err
	}
	e, err := send[Execution](ctx, c, http.MethodPost, p+"/end", values("session", sessionID), EndRequest{Status: status})
	if err != nil {
		return ExecutionReport{}, err
	}
	return c.report(ctx, e)
}

// report asks for the artifacts apart from the execution, so that no single answer grows with them.
func (c *Client) report(ctx context.Context, e Execution) (ExecutionReport, error) {
	as, err := c.Artifacts(ctx, ArtifactFilter{SessionID: e.SessionID, ExecutionID: e.ID})
	return ExecutionReport{Execution: e, Artifacts: as}, err
}

// BeginToolUse begins a tool use.
func (c *Client) BeginToolUse(ctx context.Context, r ToolUseRequest) (ToolUse, error) {
	return send[ToolUse](ctx, c, http.MethodPost, "/v1/tool-uses", nil, r)
}

// EndToolUse ends a tool use; what it wrote is final when this returns.
func (c *Client) EndToolUse(ctx context.Context, sessionID, id string) (ToolUse, error) {
	return send[ToolUse](ctx, c, http.MethodPost, "/v1/tool-uses/end", nil, ToolUseRef{SessionID: sessionID, ID: id})
}

// ToolUses returns a session's tool uses, in order of beginning.
func (c *Client) ToolUses(ctx context.Context, sessionID string) ([]ToolUse, error) {
	return list[ToolUse](ctx, c, "/v1/tool-uses", values("session", sessionID))
}
