package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// Tokens is an artifact.TokenStore in memory. The zero value is not usable: see NewTokens.
type Tokens struct {
	mu     sync.Mutex // guards tokens
	tokens map[[32]byte]artifact.Token
}

// NewTokens returns an empty store.
func NewTokens() *Tokens { return &Tokens{tokens: map[[32]byte]artifact.Token{}} }

// PutToken inserts or replaces t.
func (s *Tokens) PutToken(_ context.Context, t artifact.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[t.Hash] = t
	return nil
}

// Token returns one token.
func (s *Tokens) Token(_ context.Context, hash [32]byte) (artifact.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(hash)
}

func (s *Tokens) get(hash [32]byte) (artifact.Token, error) {
	t, ok := s.tokens[hash]
	if !ok {
		return artifact.Token{}, fmt.Errorf("token: %w", session.ErrNotFound)
	}
	return t, nil
}

// UpdateToken changes one token; f runs under the store's lock and must not call it.
func (s *Tokens) UpdateToken(_ context.Context, hash [32]byte, f func(*artifact.Token) error) (artifact.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.get(hash)
	if err != nil {
		return artifact.Token{}, err
	}
	if err := f(&t); err != nil {
		return artifact.Token{}, err
	}
	s.tokens[hash] = t
	return t, nil
}

// Tokens lists in order of creation.
func (s *Tokens) Tokens(_ context.Context, sessionID, artifactID string) ([]artifact.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []artifact.Token
	for _, t := range s.tokens {
		if (sessionID == "" || t.SessionID == sessionID) && (artifactID == "" || t.ArtifactID == artifactID) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b artifact.Token) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	return found, nil
}

// DeleteExpired removes what expired before t.
func (s *Tokens) DeleteExpired(_ context.Context, t time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for hash, token := range s.tokens {
		if token.ExpiresAt.Before(t) {
			delete(s.tokens, hash)
			n++
		}
	}
	return n, nil
}
