package ctl

import (
	"time"

	"aimon.at/vfsd/session"
)

// Artifact is a written file that is meant for the user.
type Artifact struct {
	ID                string           `json:"id"`
	Path              string           `json:"path"`
	FileName          string           `json:"fileName"`
	PathEscaped       bool             `json:"pathEscaped,omitempty"`
	Size              int64            `json:"size"`
	MimeType          string           `json:"mimeType,omitempty"`
	ToolUseID         string           `json:"toolUseId,omitempty"`
	DeclaredToolUseID string           `json:"declaredToolUseId,omitempty"`
	ExecutionID       string           `json:"executionId"`
	SessionID         string           `json:"sessionId"`
	Version           int              `json:"version"`
	Attribution       session.Sureness `json:"attribution"`
	Source            session.Source   `json:"source,omitempty"`
	Candidates        []string         `json:"candidates,omitempty"`
	Late              bool             `json:"late,omitempty"`
	Open              bool             `json:"open,omitempty"` // somebody could still write when it became final
	Final             bool             `json:"final"`
	DerivedFrom       string           `json:"derivedFrom,omitempty"`
	State             string           `json:"state"` // live, replaced, deleted or lost
	LostReason        string           `json:"lostReason,omitempty"`
	CreatedAt         time.Time        `json:"createdAt"`
}

// Write is a recorded write, artifact or not.
type Write struct {
	ID                string           `json:"id"`
	Path              string           `json:"path"`
	PathEscaped       bool             `json:"pathEscaped,omitempty"`
	Size              int64            `json:"size"`
	SessionID         string           `json:"sessionId"`
	ExecutionID       string           `json:"executionId"`
	ToolUseID         string           `json:"toolUseId,omitempty"`
	DeclaredToolUseID string           `json:"declaredToolUseId,omitempty"`
	Attribution       session.Sureness `json:"attribution"`
	Source            session.Source   `json:"source,omitempty"`
	Candidates        []string         `json:"candidates,omitempty"`
	Late              bool             `json:"late,omitempty"`
	Final             bool             `json:"final"`
	Artifact          bool             `json:"artifact"`
	Reason            string           `json:"reason"` // the rule that decided
	At                time.Time        `json:"at"`
}

// ArtifactFilter selects what a listing of artifacts or writes returns. The zero value selects all
// artifacts of the caller's only session that still have their bytes.
type ArtifactFilter struct {
	SessionID   string
	ExecutionID string
	NoForks     bool
	ToolUseID   string
	From        uint64 // a mark: only what became final after it
	All         bool   // replaced, deleted, lost and removed ones too
}

// AddRequest makes a file an artifact.
type AddRequest struct {
	SessionID   string `json:"sessionId,omitempty"`
	Path        string `json:"path"`
	PathEscaped bool   `json:"pathEscaped,omitempty"`
	ToolUseID   string `json:"toolUseId,omitempty"`
}

// TokenRequest asks for a download link.
type TokenRequest struct {
	ArtifactID   string `json:"artifactId"`
	TTLSeconds   int64  `json:"ttlSeconds"`
	MaxDownloads int    `json:"maxDownloads,omitempty"` // 0 for no limit
}

// IssuedToken is the only answer that a token's secret is in.
type IssuedToken struct {
	Token        string    `json:"token"`
	URL          string    `json:"url"`
	ExpiresAt    time.Time `json:"expiresAt"`
	ArtifactID   string    `json:"artifactId"`
	MaxDownloads int       `json:"maxDownloads,omitempty"`
}

// Token is an issued download link as listings show it: without its secret.
type Token struct {
	ID           string     `json:"id"` // the beginning of its hash: tells tokens apart, opens nothing
	ArtifactID   string     `json:"artifactId"`
	SessionID    string     `json:"sessionId"`
	State        string     `json:"state"` // active, expired, revoked or used up
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    time.Time  `json:"expiresAt"`
	MaxDownloads int        `json:"maxDownloads,omitempty"`
	Downloads    int        `json:"downloads"`
	RevokedAt    *time.Time `json:"revokedAt,omitempty"`
}

// RevokeRequest says which tokens to revoke: exactly one of Token, ArtifactID and All is set. All
// means those of SessionID, or of every session of the caller.
type RevokeRequest struct {
	Token      string `json:"token,omitempty"`
	ArtifactID string `json:"artifactId,omitempty"`
	All        bool   `json:"all,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
}

// Revoked is the answer to a revocation.
type Revoked struct {
	Revoked int `json:"revoked"`
}
