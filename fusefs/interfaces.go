package fusefs

import (
	"context"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Caller is the process behind a request. PID is a thread id in the daemon's pid namespace, 0 where
// the kernel cannot tell.
type Caller struct {
	PID uint32
	UID uint32
	GID uint32
}

// Attributor says which tool use is behind a caller that is about to change a file. It is asked while
// the caller is blocked, so that its /proc entry is readable, and must return within ctx's
// deadline. It always has an answer.
type Attributor interface {
	Attribute(ctx context.Context, c Caller) session.Attribution
}

// Recorder is told what happened, in the order in which it happened. Record must not block.
type Recorder interface {
	Record(e change.Event)

	// Fact returns the value of one of the virtual attributes user.aimon.tool_use_id,
	// user.aimon.execution_id, user.aimon.attribution, user.aimon.artifact_id of a file.
	Fact(f change.FileID, name string) (string, bool)
}
