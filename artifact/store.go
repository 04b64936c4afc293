package artifact

import (
	"context"
	"time"

	"aimon.at/vfsd/change"
)

// Store keeps entries over restarts. Implementations are safe for concurrent use. What Apply
// accepted survives kill -9 of this process; what Sync followed survives a power cut. A get of a
// missing entry is session.ErrNotFound.
type Store interface {
	// Apply carries out a batch in order. Where it fails, none or some leading part of the batch was
	// carried out, and the same batch may be applied again.
	Apply(ctx context.Context, batch []Mutation) error

	Entry(ctx context.Context, id string) (Entry, error)

	// OpenEntries returns the entries of a session that are not final, in order of creation, with
	// names as they are after every RenameDir that was applied since they were put.
	OpenEntries(ctx context.Context, sessionID string) ([]Entry, error)

	// Entries returns final entries in order of Seq. Cost is in proportion to what is scanned
	// between q.From and the q.Limit-th match.
	Entries(ctx context.Context, q Query) ([]Entry, error)

	// EntriesOf returns the final entries of a session for one inode, oldest first.
	EntriesOf(ctx context.Context, sessionID string, f change.FileID) ([]Entry, error)

	// Versions returns the final entries of a session whose shown path is path, oldest first.
	Versions(ctx context.Context, sessionID, path string) ([]Entry, error)

	// ArtifactsBelow returns of each shown path below the directory dir the latest final entry that is
	// an artifact and not removed, in any order, limit paths at most. Cost is in proportion to the
	// artifacts below dir.
	ArtifactsBelow(ctx context.Context, sessionID, dir string, limit int) ([]Entry, error)

	// LastSeq returns the greatest sequence number that was ever given in the session, 0 for none.
	LastSeq(ctx context.Context, sessionID string) (uint64, error)

	Sync() error
}

// Mutation is one step of a batch: exactly one field is set.
type Mutation struct {
	Put       *Entry     // insert or replace by ID
	Delete    *EntryKey  // remove; a missing one is no error
	RenameDir *RenameDir // every open entry's names below From are below To from here on
}

// EntryKey names an entry.
type EntryKey struct{ SessionID, ID string }

// RenameDir records that a directory was renamed.
type RenameDir struct{ SessionID, From, To string }

// Query selects final entries of a session.
type Query struct {
	SessionID     string
	Executions    []string // any of these; empty for all
	ToolUseID     string   // "" for all
	ArtifactsOnly bool     // leaves out plain writes and removed ones
	From          uint64   // only Seq > From
	Limit         int      // 0 for no limit
}

// Token is an issued download link. The secret itself is stored nowhere.
type Token struct {
	Hash         [32]byte   `json:"hash"` // SHA-256 of the secret
	ArtifactID   string     `json:"artifactId"`
	SessionID    string     `json:"sessionId"`
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    time.Time  `json:"expiresAt"`
	MaxDownloads int        `json:"maxDownloads,omitempty"` // 0 for no limit
	Downloads    int        `json:"downloads"`
	RevokedAt    *time.Time `json:"revokedAt,omitempty"`
}

// TokenStore keeps tokens over restarts, each change durable (synced) when the call returns.
// Implementations are safe for concurrent use. A get of a missing one is session.ErrNotFound.
type TokenStore interface {
	PutToken(ctx context.Context, t Token) error
	Token(ctx context.Context, hash [32]byte) (Token, error)

	// UpdateToken changes one token in one transaction: f sees the stored value, and nothing is
	// written where it returns an error, which is passed on. f may be called more than once.
	UpdateToken(ctx context.Context, hash [32]byte, f func(*Token) error) (Token, error)

	// Tokens returns the tokens of a session, or of all for "", or of one artifact where artifactID
	// is set, in order of creation.
	Tokens(ctx context.Context, sessionID, artifactID string) ([]Token, error)

	// DeleteExpired removes the tokens that expired before t and returns how many.
	DeleteExpired(ctx context.Context, t time.Time) (int, error)
}
