package server

import (
	"context"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// Sessions is the session controller (session.Controller). A sessionID of "" means: the only one among
// the caller's sessions that fits; session.ErrConflict where several do, with a message that says to
// name one. What a caller may not see is session.ErrNotFound.
type Sessions interface {
	Session(ctx context.Context, c session.Caller, id string) (session.Session, error)
	Sessions(ctx context.Context, c session.Caller) ([]session.Session, error)
	DeleteSession(ctx context.Context, c session.Caller, id string) error

	BeginExecution(ctx context.Context, c session.Caller, s session.ExecutionSpec) (session.Execution, error)
	Execution(ctx context.Context, c session.Caller, sessionID, id string) (session.Execution, error)
	Executions(ctx context.Context, c session.Caller, sessionID string) ([]session.Execution, error)
	MarkExecution(ctx context.Context, c session.Caller, sessionID, id string) (uint64, error)
	EndExecution(ctx context.Context, c session.Caller, sessionID, id string, status session.Status) (session.Execution, error)

	BeginToolUse(ctx context.Context, c session.Caller, s session.ToolUseSpec) (session.ToolUse, error)
	EndToolUse(ctx context.Context, c session.Caller, sessionID, id string) (session.ToolUse, error)
	ToolUses(ctx context.Context, c session.Caller, sessionID string) ([]session.ToolUse, error)
}

// Artifacts is what executions produced (artifact.Library). The caller's right to see the
// session is checked by the handlers through Sessions before these are called; an artifact id is looked up
// first and its session checked after. Paths are bytes as in change.Event.
type Artifacts interface {
	// List returns entries on one snapshot: the final ones in order of Seq, then the open ones as
	// they stand now. NextFrom of the answer continues a limited list.
	List(ctx context.Context, q artifact.ListQuery) (artifact.Listing, error)
	Show(ctx context.Context, id string) (artifact.View, error)

	// Open returns the bytes of a final artifact, or of an open one as they stand. The caller closes it.
	// artifact.ErrGone where they are replaced, deleted or lost.
	Open(ctx context.Context, id string) (artifact.Content, error)

	// Add makes the file at path an artifact; Remove takes one out. Both change the collector only,
	// not the file.
	Add(ctx context.Context, sessionID, path, toolUseID string) (artifact.View, error)
	Remove(ctx context.Context, id string) (artifact.View, error)
	Versions(ctx context.Context, sessionID, path string) ([]artifact.View, error)
}

// Tokens issues and revokes download links (artifact.Tokens). A secret is in the answer of Issue only.
type Tokens interface {
	// Issue makes an open artifact final first: a token is bound to bytes.
	Issue(ctx context.Context, artifactID string, ttl time.Duration, maxDownloads int) (secret string, t artifact.Token, err error)
	List(ctx context.Context, sessionID, artifactID string) ([]artifact.Token, error)
	Lookup(ctx context.Context, secret string) (artifact.Token, error)
	Revoke(ctx context.Context, secret string) (artifact.Token, error)
	RevokeArtifact(ctx context.Context, artifactID string) (int, error)
	RevokeSession(ctx context.Context, sessionID string) (int, error)
}

// Cgroups makes the cgroups that vfsctl run puts commands into.
type Cgroups interface {
	// Enter makes a cgroup for the tool use below the one that process pid is in and moves the process
	// there. The returned path is relative to the hierarchy's root, as in /proc/PID/cgroup, and nobody was in
	// that cgroup before. Where none can be made it is an error that the caller works around: ancestry decides then.
	Enter(ctx context.Context, sessionID, toolUseID string, pid int) (path string, err error)
}

// Mount is a live mount as listings show it.
type Mount struct {
	Mountpoint  string
	Source      string
	SessionID   string
	Owner       uint32
	Artifacts   bool
	Passthrough bool
	Since       time.Time
	Detached    bool // its name is gone: it ends with its last user
	Pending     int  // events recorded by the mount and not yet in the index
}

// MountSpec asks for a mount; zero values take the daemon's defaults.
type MountSpec struct {
	Source       string
	Mountpoint   string
	SessionID    string
	Owner        *uint32
	Artifacts    *bool
	AllowOther   bool
	Exclusive    bool
	CacheTimeout *time.Duration
	Passthrough  string // "auto" or "off"
}

// Mounts adds, removes and lists the mounts of this daemon.
type Mounts interface {
	Mount(ctx context.Context, s MountSpec) (Mount, error)
	// Unmount detaches a busy mount lazily; detached says so.
	Unmount(ctx context.Context, mountpoint string) (detached bool, err error)
	Mounts() []Mount
}

// Checker compares the index with itself and with the files.
type Checker interface {
	// Check calls found once for every disagreement, with one line that says what disagrees.
	Check(ctx context.Context, found func(string)) error
}
