package ctl

import (
	"time"

	"aimon.at/vfsd/session"
)

// Status is how the daemon stands. Mounts and Sessions are those that the caller may see.
type Status struct {
	Version       string    `json:"version"`
	PID           int       `json:"pid"`
	StartedAt     time.Time `json:"startedAt"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	Socket        string    `json:"socket"`
	HTTP          string    `json:"http,omitempty"` // the gateway's address; absent for none
	StateDir      string    `json:"stateDir"`
	Mounts        []Mount   `json:"mounts"`
	Sessions      int       `json:"sessions"`
	RecordingLag  int       `json:"recordingLag"` // events that mounts recorded and the index has not yet
}

// Mount is a live mount.
type Mount struct {
	Mountpoint       string    `json:"mountpoint"`
	Source           string    `json:"source"`
	SessionID        string    `json:"sessionId"`
	Owner            uint32    `json:"owner"`            // uid
	ArtifactsDefault bool      `json:"artifactsDefault"` // of new executions
	Passthrough      bool      `json:"passthrough"`
	Since            time.Time `json:"since"`
	Detached         bool      `json:"detached,omitempty"` // unmounted while busy: it ends with its last user
	Pending          int       `json:"pending"`            // events recorded and not yet in the index
}

// MountRequest asks for a mount. Absent fields take the daemon's defaults.
type MountRequest struct {
	Source             string  `json:"source"`     // absolute
	Mountpoint         string  `json:"mountpoint"` // absolute
	SessionID          string  `json:"sessionId,omitempty"`
	Owner              *uint32 `json:"owner,omitempty"`
	Artifacts          *bool   `json:"artifacts,omitempty"`
	AllowOther         bool    `json:"allowOther,omitempty"`
	Exclusive          bool    `json:"exclusive,omitempty"`
	CacheTimeoutMillis *int64  `json:"cacheTimeoutMillis,omitempty"`
	Passthrough        string  `json:"passthrough,omitempty"` // "auto" or "off"
}

// Unmounted is the answer to an unmount.
type Unmounted struct {
	Mountpoint string `json:"mountpoint"`
	Detached   bool   `json:"detached"` // it was busy: it goes when its last user does
}

// Session is one conversation with an agent.
type Session struct {
	ID               string    `json:"id"`
	Owner            uint32    `json:"owner"` // uid
	Source           string    `json:"source,omitempty"`
	ArtifactsDefault bool      `json:"artifactsDefault"` // of new executions
	CreatedAt        time.Time `json:"createdAt"`
}

// Execution is one run inside a session.
type Execution struct {
	ID               string         `json:"id"`
	SessionID        string         `json:"sessionId"`
	ParentID         string         `json:"parentId,omitempty"`
	Implicit         bool           `json:"implicit,omitempty"`
	ArtifactsDefault bool           `json:"artifactsDefault"` // whether an undeclared file is an artifact
	Status           session.Status `json:"status"`
	BeganAt          time.Time      `json:"beganAt"`
	EndedAt          *time.Time     `json:"endedAt,omitempty"`
}

// ExecutionReport is an execution with its artifacts, those of its forks included.
type ExecutionReport struct {
	Execution
	Artifacts []Artifact `json:"artifacts"`
}

// ExecutionRequest begins an execution.
type ExecutionRequest struct {
	SessionID string `json:"sessionId,omitempty"` // absent: the caller's only one
	ID        string `json:"id,omitempty"`        // absent: a new one
	ParentID  string `json:"parentId,omitempty"`
	Artifacts *bool  `json:"artifacts,omitempty"` // absent: the session's default
}

// EndRequest ends an execution.
type EndRequest struct {
	Status session.Status `json:"status"`
}

// Mark is the answer to a mark.
type Mark struct {
	Mark uint64 `json:"mark"`
}

// ToolUse is one tool call.
type ToolUse struct {
	ID          string         `json:"id"`
	SessionID   string         `json:"sessionId"`
	ExecutionID string         `json:"executionId"`
	Origin      session.Origin `json:"origin"`
	Artifact    *bool          `json:"artifact,omitempty"`
	PID         int            `json:"pid,omitempty"`    // the process it was begun with
	Cgroup      string         `json:"cgroup,omitempty"` // as in /proc/PID/cgroup
	BeganAt     time.Time      `json:"beganAt"`
	EndedAt     *time.Time     `json:"endedAt,omitempty"`
}

// ToolUseRequest begins a tool use.
type ToolUseRequest struct {
	SessionID   string `json:"sessionId,omitempty"`   // absent: the execution's, else the caller's only one
	ExecutionID string `json:"executionId,omitempty"` // absent: the current one
	ID          string `json:"id"`
	Artifact    *bool  `json:"artifact,omitempty"`
	PID         int    `json:"pid,omitempty"`  // a process in the daemon's pid namespace
	Self        bool   `json:"self,omitempty"` // begin it with the calling process, in a cgroup where one can be made
}

// ToolUseRef names a tool use.
type ToolUseRef struct {
	SessionID string `json:"sessionId,omitempty"`
	ID        string `json:"id"`
}

// Problems is the answer to a check: a line for every disagreement. Truncated says that there are
// more than the answer holds.
type Problems struct {
	Problems  []Problem `json:"problems"`
	Truncated bool      `json:"truncated,omitempty"`
}

// Problem is one disagreement that a check found.
type Problem struct {
	Message string `json:"message"`
}

// Page is the answer to a listing.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  uint64 `json:"next,omitempty"` // where the list goes on; 0 at its end
}
