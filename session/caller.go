package session

import "context"

// Caller is who asks: the peer of the control socket, by its kernel credentials, or the daemon
// itself.
type Caller struct {
	UID        uint32
	PID        int  // in the daemon's pid namespace; 0 where unknown
	Privileged bool // root or the daemon's own user: sees and may do everything
}

// MaySee reports whether c sees and changes what belongs to a session of that owner.
func (c Caller) MaySee(owner uint32) bool { return c.Privileged || c.UID == owner }

// ExecutionSpec asks for an execution.
type ExecutionSpec struct {
	SessionID string // "" for the caller's only session
	ID        string // "" for a new one
	ParentID  string // "" for a turn
	Artifacts *bool  // nil for the session's default
}

// ToolUseSpec asks for a tool use.
type ToolUseSpec struct {
	SessionID   string // "" for the execution's, else the caller's only session
	ExecutionID string // "" for the current one
	ID          string
	Artifact    *bool
	PID         int    // the process it is begun with, in the daemon's pid namespace; 0 for none
	Cgroup      string // made for it already; "" for none

	// Enter, where it is not nil, puts the process into a new cgroup and returns its path, as Cgroup has it. It is
	// called once, and only when the id is this tool use's: a begin that is refused for its id has moved nobody.
	// Where it fails, the tool use begins without a cgroup.
	Enter func(ctx context.Context, sessionID string) (cgroup string, err error)
}
