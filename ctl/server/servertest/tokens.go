package servertest

import (
	"context"
	"fmt"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

type tokens struct{ *Fake }

func (t tokens) Issue(ctx context.Context, artifactID string, ttl time.Duration, maxDownloads int) (string, artifact.Token, error) {
	v, err := library{t.Fake}.Show(ctx, artifactID)
	if err != nil {
		return "", artifact.Token{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	secret := fmt.Sprintf("secret-%d", len(t.tokens)+1)
	k := artifact.Token{
		Hash: hash(secret), ArtifactID: artifactID, SessionID: v.SessionID,
		CreatedAt: t.Now(), ExpiresAt: t.Now().Add(ttl), MaxDownloads: maxDownloads,
	}
	t.tokens = append(t.tokens, k)
	return secret, k, nil
}

func (t tokens) List(_ context.Context, sessionID, artifactID string) ([]artifact.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []artifact.Token
	for _, k := range t.tokens {
		if (sessionID == "" || k.SessionID == sessionID) && (artifactID == "" || k.ArtifactID == artifactID) {
			out = append(out, k)
		}
	}
	return out, nil
}

func (t tokens) find(h [32]byte) (*artifact.Token, error) {
	for i := range t.tokens {
		if t.tokens[i].Hash == h {
			return &t.tokens[i], nil
		}
	}
	return nil, fmt.Errorf("token: %w", session.ErrNotFound)
}

func (t tokens) Lookup(_ context.Context, secret string) (artifact.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(hash(secret))
	if err != nil {
		return artifact.Token{}, err
	}
	return *k, nil
}

func (t tokens) Revoke(_ context.Context, secret string) (artifact.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(hash(secret))
	if err != nil {
		return artifact.Token{}, err
	}
	k.RevokedAt = new(t.Now())
	return *k, nil
}

func (t tokens) RevokeArtifact(_ context.Context, id string) (int, error) {
	return t.revoke(func(k artifact.Token) bool { return k.ArtifactID == id }), nil
}

func (t tokens) RevokeSession(_ context.Context, id string) (int, error) {
	return t.revoke(func(k artifact.Token) bool { return k.SessionID == id }), nil
}

func (t tokens) revoke(which func(artifact.Token) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for i := range t.tokens {
		if which(t.tokens[i]) && t.tokens[i].RevokedAt == nil {
			t.tokens[i].RevokedAt = new(t.Now())
			n++
		}
	}
	return n
}

func (t tokens) Redeem(_ context.Context, secret string) (artifact.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(hash(secret))
	if err != nil {
		return artifact.Token{}, err
	}
	return *k, t.usable(*k)
}

func (t tokens) Count(_ context.Context, secret string) (artifact.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, err := t.find(hash(secret))
	if err != nil {
		return artifact.Token{}, err
	}
	if err := t.usable(*k); err != nil {
		return artifact.Token{}, err
	}
	k.Downloads++
	return *k, nil
}

func (t tokens) usable(k artifact.Token) error {
	switch {
	case k.RevokedAt != nil:
		return fmt.Errorf("%w: %s", artifact.ErrGone, "revoked")
	case !t.Now().Before(k.ExpiresAt):
		return fmt.Errorf("%w: %s", artifact.ErrGone, "expired")
	case k.MaxDownloads > 0 && k.Downloads >= k.MaxDownloads:
		return fmt.Errorf("%w: %s", artifact.ErrGone, "used up")
	}
	return nil
}
