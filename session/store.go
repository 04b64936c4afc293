package session

import "context"

// Store keeps sessions, executions, tool uses and marks over restarts. Implementations are safe
// for concurrent use. Put replaces the row of the same id and is on disk, kill -9 of this process
// included, when it returns; Sync is what survives a power cut. A get of a missing row is
// ErrNotFound. Lists are in order of beginning.
type Store interface {
	PutSession(ctx context.Context, s Session) error
	Session(ctx context.Context, id string) (Session, error)
	Sessions(ctx context.Context) ([]Session, error)

	// DeleteSession removes the session and every row of every kind that belongs to it: executions,
	// tool uses, entries, tokens.
	DeleteSession(ctx context.Context, id string) error

	PutExecution(ctx context.Context, e Execution) error
	Execution(ctx context.Context, sessionID, id string) (Execution, error)
	Executions(ctx context.Context, sessionID string) ([]Execution, error)

	// OpenExecutions returns the executions of a session that have not ended and costs in proportion
	// to what it returns.
	OpenExecutions(ctx context.Context, sessionID string) ([]Execution, error)

	PutToolUse(ctx context.Context, t ToolUse) error
	ToolUse(ctx context.Context, sessionID, id string) (ToolUse, error)

	// ToolUses returns the tool uses of a session; openOnly leaves out those that ended and costs
	// in proportion to what it returns.
	ToolUses(ctx context.Context, sessionID string, openOnly bool) ([]ToolUse, error)

	Sync() error
}

// Collector is what the Controller needs of the recorder of a session's live mount. When a call
// returns without error, what it made final is durable.
type Collector interface {
	// FinishToolUse makes the open entries of t final. t has its end time.
	FinishToolUse(ctx context.Context, t ToolUse) error

	// FinishExecution makes all open entries of e final. e has its end status and time.
	FinishExecution(ctx context.Context, e Execution) error

	// Mark makes the entries of e and its forks final whose tool use is not open, and returns the mark:
	// every entry that is final in the session now has a sequence number at or below it, every
	// later one a greater number.
	Mark(ctx context.Context, e Execution) (uint64, error)
}
