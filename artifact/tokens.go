package artifact

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"aimon.at/vfsd/session"
)

// secretSize is the size of a secret in bytes before it is encoded.
const secretSize = 32

// secretText is how secrets are written: 43 URL-safe characters. Strict, so that a secret has one
// spelling only.
var secretText = base64.RawURLEncoding.Strict()

// TokenConfig configures Tokens.
type TokenConfig struct {
	MaxTTL time.Duration    // the longest life of a token; 0 for 30 days
	Keep   time.Duration    // how long a token is kept after it expired, to answer gone and not unknown; 0 for 7 days
	Now    func() time.Time // nil for time.Now
	Random io.Reader        // nil for crypto/rand
}

// Finaliser makes an artifact final, so that a token is bound to bytes. Library is one.
type Finaliser interface {
	Finalise(ctx context.Context, id string) (Entry, error)
}

// Tokens issues download links and says which are good. It is safe for concurrent use. Only the
// hash of a secret is kept; a secret is looked for by its hash, so what comparing takes tells
// nothing about it.
type Tokens struct {
	store     TokenStore
	artifacts Finaliser
	cfg       TokenConfig
}

// NewTokens returns Tokens over a store.
func NewTokens(store TokenStore, artifacts Finaliser, cfg TokenConfig) *Tokens {
	if cfg.MaxTTL == 0 {
		cfg.MaxTTL = 30 * 24 * time.Hour
	}
	if cfg.Keep == 0 {
		cfg.Keep = 7 * 24 * time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	return &Tokens{store: store, artifacts: artifacts, cfg: cfg}
}

// Issue makes an artifact final and a token for it that lives for ttl: session.ErrInvalid where
// that is not positive or too long, where maxDownloads is negative (0 is no limit), or where the
// entry is no artifact. The secret is in this answer only.
func (t *Tokens) Issue(ctx context.Context, artifactID string, ttl time.Duration, maxDownloads int) (secret string, token Token, err error) {
	switch {
	case ttl <= 0:
		return "", Token{}, fmt.Errorf("%w time to live %s: it must be positive", session.ErrInvalid, ttl)
	case ttl > t.cfg.MaxTTL:
		return "", Token{}, fmt.Errorf("%w time to live %s: at most %s is allowed", session.ErrInvalid, ttl, t.cfg.MaxTTL)
	case maxDownloads < 0:
		return "", Token{}, fmt.Errorf("%w number of downloads %d: use 0 for no limit", session.ErrInvalid, maxDownloads)
	}
	e, err := t.artifacts.Finalise(ctx, artifactID)
	if err != nil {
		return "", Token{}, fmt.Errorf("issue token: %w", err)
	}
	if !e.Artifact || e.Removed {
		return "", Token{}, fmt.Errorf("%w artifact %s: it is a plain write (%s); add its path to the artifacts first", session.ErrInvalid, e.ID, e.Reason)
	}
	var raw [secretSize]byte
	if _, err := io.ReadFull(t.cfg.Random, raw[:]); err != nil {
		return "", Token{}, fmt.Errorf("issue token: %w", err)
	}
	secret = secretText.EncodeToString(raw[:])
	now := t.cfg.Now().UTC()
	token = Token{Hash: sha256.Sum256([]byte(secret)), ArtifactID: e.ID, SessionID: e.SessionID,
		CreatedAt: now, ExpiresAt: now.Add(ttl), MaxDownloads: maxDownloads}
	if err := t.store.PutToken(ctx, token); err != nil {
		return "", Token{}, fmt.Errorf("issue token: %w", err)
	}
	return secret, token, nil
}

// List returns tokens, expired and revoked ones too, in order of creation.
func (t *Tokens) List(ctx context.Context, sessionID, artifactID string) ([]Token, error) {
	return t.store.Tokens(ctx, sessionID, artifactID)
}

// Lookup returns the token of a secret, also where it is good for nothing any more.
// session.ErrNotFound where there is none.
func (t *Tokens) Lookup(ctx context.Context, secret string) (Token, error) {
	hash, err := hashOf(secret)
	if err != nil {
		return Token{}, err
	}
	return t.store.Token(ctx, hash)
}

// hashOf refuses what no secret looks like before anything is computed.
func hashOf(secret string) ([sha256.Size]byte, error) {
	if len(secret) != secretText.EncodedLen(secretSize) {
		return [sha256.Size]byte{}, fmt.Errorf("token: %w", session.ErrNotFound)
	}
	if _, err := secretText.DecodeString(secret); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("token: %w", session.ErrNotFound)
	}
	return sha256.Sum256([]byte(secret)), nil
}

// Redeem returns the token of a secret that a download may begin with. session.ErrNotFound where it
// is unknown, ErrGone where it is expired, revoked or used up, ErrRemoved where what it is for is no
// artifact any more. It counts nothing: see Count.
func (t *Tokens) Redeem(ctx context.Context, secret string) (Token, error) {
	token, err := t.Lookup(ctx, secret)
	if err != nil {
		return Token{}, err
	}
	if err := t.good(token); err != nil {
		return token, err
	}
	e, err := t.artifacts.Finalise(ctx, token.ArtifactID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return token, nil // whoever opens it is told
	case err != nil:
		return token, err
	case !e.Artifact || e.Removed:
		return token, fmt.Errorf("artifact %s: %w", token.ArtifactID, ErrRemoved)
	}
	return token, nil
}

// Count counts a download, to be called when its first byte is about to be sent. It checks again in
// the same transaction: of two that ask for the last download one gets ErrGone.
func (t *Tokens) Count(ctx context.Context, secret string) (Token, error) {
	hash, err := hashOf(secret)
	if err != nil {
		return Token{}, err
	}
	return t.store.UpdateToken(ctx, hash, func(token *Token) error {
		if err := t.good(*token); err != nil {
			return err
		}
		token.Downloads++
		return nil
	})
}

func (t *Tokens) good(token Token) error {
	switch {
	case token.RevokedAt != nil:
		return fmt.Errorf("%w: the link was revoked", ErrGone)
	case !t.cfg.Now().Before(token.ExpiresAt):
		return fmt.Errorf("%w: the link has expired", ErrGone)
	case token.MaxDownloads > 0 && token.Downloads >= token.MaxDownloads:
		return fmt.Errorf("%w: the link is used up", ErrGone)
	}
	return nil
}

// Revoke makes a token good for nothing. Revoking it again changes nothing.
func (t *Tokens) Revoke(ctx context.Context, secret string) (Token, error) {
	hash, err := hashOf(secret)
	if err != nil {
		return Token{}, err
	}
	return t.store.UpdateToken(ctx, hash, t.revoke)
}

func (t *Tokens) revoke(token *Token) error {
	if token.RevokedAt == nil {
		now := t.cfg.Now().UTC()
		token.RevokedAt = &now
	}
	return nil
}

// RevokeArtifact revokes all tokens of an artifact and returns how many it revoked.
func (t *Tokens) RevokeArtifact(ctx context.Context, artifactID string) (int, error) {
	if artifactID == "" {
		return 0, fmt.Errorf("%w artifact id: it is empty", session.ErrInvalid)
	}
	return t.revokeAll(ctx, "", artifactID)
}

// RevokeSession revokes all tokens of a session, of all sessions for "", and returns how many.
func (t *Tokens) RevokeSession(ctx context.Context, sessionID string) (int, error) {
	return t.revokeAll(ctx, sessionID, "")
}

func (t *Tokens) revokeAll(ctx context.Context, sessionID, artifactID string) (int, error) {
	tokens, err := t.store.Tokens(ctx, sessionID, artifactID)
	if err != nil {
		return 0, fmt.Errorf("revoke tokens: %w", err)
	}
	n := 0
	for _, token := range tokens {
		if token.RevokedAt != nil {
			continue
		}
		_, err := t.store.UpdateToken(ctx, token.Hash, t.revoke)
		if errors.Is(err, session.ErrNotFound) {
			continue // expired and cleaned away meanwhile
		}
		if err != nil {
			return n, fmt.Errorf("revoke tokens: %w", err)
		}
		n++
	}
	return n, nil
}

// Clean deletes tokens that expired so long ago that they need no answer of their own any more.
func (t *Tokens) Clean(ctx context.Context) (int, error) {
	return t.store.DeleteExpired(ctx, t.cfg.Now().Add(-t.cfg.Keep))
}
