// Package session knows sessions, their executions and tool uses, the marks between iterations,
// and who may see what. Its Controller is the one place where these begin, end and are looked up.
//
// # Concepts
//
// A session is one conversation with an agent, owned by a uid, with at most one live mount. An
// execution is one run inside it (a turn, or a fork with a parent execution). A tool use is one
// tool call, named by the id that the model gave it, unique within its session. A session always
// has an execution to collect into: an implicit one begins with the first write that finds none
// and ends when an explicit one begins.
//
// # Visibility
//
// Root and the daemon's own user see everything. An owner sees and changes everything of their
// own sessions. For everybody else it does not exist: ErrNotFound, never a refusal that would
// tell that it does.
package session

import "time"

// Session is one conversation with an agent.
type Session struct {
	ID        string    `json:"id"`
	Owner     uint32    `json:"owner"`            // uid
	Source    string    `json:"source,omitempty"` // what its last mount served
	Artifacts bool      `json:"artifacts"`        // the default of new executions
	CreatedAt time.Time `json:"createdAt"`
}

// Status is how an execution stands: Running, or how it ended.
type Status string

// The states of an execution. All but Running are ends.
const (
	Running       Status = "RUNNING"
	Completed     Status = "COMPLETED"
	Truncated     Status = "TRUNCATED"
	Error         Status = "ERROR"
	Interrupted   Status = "INTERRUPTED"
	Suspended     Status = "SUSPENDED"
	MaxIterations Status = "MAX_ITERATIONS"
	Command       Status = "COMMAND"
)

// Ended reports whether s is one of the ends.
func (s Status) Ended() bool {
	switch s {
	case Completed, Truncated, Error, Interrupted, Suspended, MaxIterations, Command:
		return true
	}
	return false
}

// Execution is one run inside a session. Its id is unique within the session.
type Execution struct {
	ID        string     `json:"id"`
	SessionID string     `json:"sessionId"`
	ParentID  string     `json:"parentId,omitempty"` // set for a fork
	Implicit  bool       `json:"implicit,omitempty"`
	Artifacts bool       `json:"artifacts"` // whether an undeclared file is an artifact
	Status    Status     `json:"status"`
	BeganAt   time.Time  `json:"beganAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Origin is how a tool use came to be known.
type Origin string

const (
	OriginAPI         Origin = "api"         // begun by a caller of the control API
	OriginEnvironment Origin = "environment" // declared by a writing process
)

// Process names a process over its whole life: a pid may be used again, with its start time never.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat
}

// ToolUse is one tool call. Its id is unique within its session and, once ended, never begun again.
type ToolUse struct {
	ID          string     `json:"id"`
	SessionID   string     `json:"sessionId"`
	ExecutionID string     `json:"executionId"`
	Origin      Origin     `json:"origin"`
	Artifact    *bool      `json:"artifact,omitempty"` // intent for all it writes; nil where undeclared
	Process     *Process   `json:"process,omitempty"`  // the process it was begun with
	Cgroup      string     `json:"cgroup,omitempty"`   // its cgroup v2, relative to the hierarchy's root, as in /proc/PID/cgroup
	BeganAt     time.Time  `json:"beganAt"`
	EndedAt     *time.Time `json:"endedAt,omitempty"`
}

// Open reports whether the tool use has not ended.
func (t ToolUse) Open() bool { return t.EndedAt == nil }

// Sureness says how sure an attribution is.
type Sureness string

const (
	Exact     Sureness = "exact"     // the caller is in the tool use's cgroup or descends from its process
	Declared  Sureness = "declared"  // the caller's or its nearest ancestor's environment says so
	Window    Sureness = "window"    // exactly one tool use of the API was open
	Ambiguous Sureness = "ambiguous" // several could be it: none is chosen
	None      Sureness = "none"
)

// Source says which evidence an attribution rests on.
type Source string

const (
	SourceCgroup      Source = "cgroup"
	SourceAncestor    Source = "ancestor"
	SourceEnvironment Source = "environment"
	SourceWindow      Source = "window"
)

// Attribution says which tool use made a change and how sure that is. It is a value: candidates
// must not be changed after it was made.
type Attribution struct {
	Sureness          Sureness `json:"attribution"`
	Source            Source   `json:"source,omitempty"`
	ToolUseID         string   `json:"toolUseId,omitempty"`         // "" for Ambiguous and None
	ExecutionID       string   `json:"executionId"`                 // where the change is collected; always set
	DeclaredToolUseID string   `json:"declaredToolUseId,omitempty"` // what the environment said, where it disagreed
	Candidates        []string `json:"candidates,omitempty"`        // tool-use ids, for Ambiguous
	Artifact          *bool    `json:"artifact,omitempty"`          // the caller's or tool use's declared intent
	Late              bool     `json:"late,omitempty"`              // the tool use had ended when the change began
}
