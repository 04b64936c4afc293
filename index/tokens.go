package index

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/artifact"
)

type tokenRow struct{ artifact.Token }

func tokenKey(hash [32]byte) key { return newKey(kindToken).hash(hash) }

func (r *tokenRow) key() key { return tokenKey(r.Hash) }
func (r *tokenRow) secondary() []key {
	return []key{
		newKey(kindTokenArtifact).text(r.ArtifactID).time(r.CreatedAt).hash(r.Hash),
		newKey(kindTokenSession).text(r.SessionID).time(r.CreatedAt).hash(r.Hash),
		newKey(kindTokenExpiry).time(r.ExpiresAt).hash(r.Hash),
	}
}

// PutToken implements artifact.TokenStore.
func (x *Index) PutToken(ctx context.Context, t artifact.Token) error {
	if err := x.putRow(ctx, &tokenRow{t}); err != nil {
		return err
	}
	return x.Sync()
}

// Token implements artifact.TokenStore.
func (x *Index) Token(ctx context.Context, hash [32]byte) (artifact.Token, error) {
	r, err := one[*tokenRow](ctx, x, tokenKey(hash), "token", "")
	if err != nil {
		return artifact.Token{}, err
	}
	return r.Token, nil
}

// UpdateToken implements artifact.TokenStore.
func (x *Index) UpdateToken(ctx context.Context, hash [32]byte, f func(*artifact.Token) error) (t artifact.Token, err error) {
	err = x.update(ctx, func(tx *badger.Txn) error {
		r, err := loadAs[*tokenRow](tx, tokenKey(hash))
		if err != nil {
			return err
		}
		if err := f(&r.Token); err != nil {
			return err
		}
		r.Hash = hash
		t = r.Token
		return x.put(tx, r)
	})
	if err == nil {
		err = x.Sync()
	}
	if err != nil {
		return artifact.Token{}, missing(err, "token", "")
	}
	return t, nil
}

// Tokens implements artifact.TokenStore.
func (x *Index) Tokens(ctx context.Context, sessionID, artifactID string) ([]artifact.Token, error) {
	value := func(r *tokenRow) artifact.Token { return r.Token }
	switch {
	case artifactID != "":
		found, err := list(ctx, x, newKey(kindTokenArtifact).text(artifactID), value)
		return slices.DeleteFunc(found, func(t artifact.Token) bool { return sessionID != "" && t.SessionID != sessionID }), err
	case sessionID != "":
		return list(ctx, x, newKey(kindTokenSession).text(sessionID), value)
	}
	all, err := list(ctx, x, newKey(kindTokenExpiry), value)
	slices.SortStableFunc(all, func(a, b artifact.Token) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	return all, err
}

// DeleteExpired implements artifact.TokenStore.
func (x *Index) DeleteExpired(ctx context.Context, t time.Time) (int, error) {
	end := newKey(kindTokenExpiry).time(t)
	n, err := x.removeBelow(ctx, newKey(kindTokenExpiry), end)
	if err == nil && n > 0 {
		err = x.Sync()
	}
	return n, err
}

// hexHash names a token in a finding: the hash opens nothing.
func hexHash(h [32]byte) string { return hex.EncodeToString(h[:8]) }
