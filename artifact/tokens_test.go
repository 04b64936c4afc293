package artifact_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/artifact/memstore"
	"aimon.at/vfsd/session"
)

type finaliser map[string]artifact.Entry

func (f finaliser) Finalise(_ context.Context, id string) (artifact.Entry, error) {
	e, ok := f[id]
	if !ok {
		return e, session.ErrNotFound
	}
	return e, nil
}

// clock is a time that stands still until it is moved.
type clock struct{ now time.Time }

func newTokens() (*artifact.Tokens, *memstore.Tokens, *clock) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	store := memstore.NewTokens()
	entries := finaliser{
		"a1": {ID: "a1", SessionID: "s1", Artifact: true, Final: true},
		"a2": {ID: "a2", SessionID: "s2", Artifact: true, Final: true},
		"w":  {ID: "w", SessionID: "s1", Final: true},
		"r":  {ID: "r", SessionID: "s1", Artifact: true, Removed: true, Final: true},
	}
	return artifact.NewTokens(store, entries, artifact.TokenConfig{MaxTTL: 24 * time.Hour, Now: func() time.Time { return c.now }}), store, c
}

func TestIssue(t *testing.T) {
	ctx := context.Background()
	tokens, _, _ := newTokens()
	secret, tok, err := tokens.Issue(ctx, "a1", time.Hour, 2)
	require.NoError(t, err)
	require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, secret)
	require.Equal(t, sha256.Sum256([]byte(secret)), tok.Hash)
	require.Equal(t, "a1", tok.ArtifactID)
	require.Equal(t, "s1", tok.SessionID)
	require.Equal(t, time.Hour, tok.ExpiresAt.Sub(tok.CreatedAt))

	other, _, err := tokens.Issue(ctx, "a1", time.Hour, 0)
	require.NoError(t, err)
	require.NotEqual(t, secret, other)

	for _, c := range []struct {
		name string
		id   string
		ttl  time.Duration
		max  int
		want error
	}{
		{"no time to live", "a1", 0, 0, session.ErrInvalid},
		{"negative time to live", "a1", -time.Second, 0, session.ErrInvalid},
		{"too long", "a1", 24*time.Hour + 1, 0, session.ErrInvalid},
		{"negative downloads", "a1", time.Hour, -1, session.ErrInvalid},
		{"a plain write", "w", time.Hour, 0, session.ErrInvalid},
		{"a removed one", "r", time.Hour, 0, session.ErrInvalid},
		{"unknown", "a9", time.Hour, 0, session.ErrNotFound},
	} {
		_, _, err := tokens.Issue(ctx, c.id, c.ttl, c.max)
		require.ErrorIs(t, err, c.want, c.name)
	}
}

func TestRedeem(t *testing.T) {
	ctx := context.Background()
	tokens, _, clock := newTokens()
	secret, _, err := tokens.Issue(ctx, "a1", time.Hour, 0)
	require.NoError(t, err)
	tok, err := tokens.Redeem(ctx, secret)
	require.NoError(t, err)
	require.Equal(t, "a1", tok.ArtifactID)

	for _, guess := range []string{"", "x", strings.Repeat("A", 43), secret + "=", secret[:42], strings.Repeat("/", 43)} {
		_, err := tokens.Redeem(ctx, guess)
		require.ErrorIs(t, err, session.ErrNotFound, guess)
		_, err = tokens.Count(ctx, guess)
		require.ErrorIs(t, err, session.ErrNotFound, guess)
		_, err = tokens.Revoke(ctx, guess)
		require.ErrorIs(t, err, session.ErrNotFound, guess)
	}
	clock.now = clock.now.Add(time.Hour - 1)
	_, err = tokens.Redeem(ctx, secret)
	require.NoError(t, err)
	clock.now = clock.now.Add(1)
	_, err = tokens.Redeem(ctx, secret)
	require.ErrorIs(t, err, artifact.ErrGone)
	_, err = tokens.Count(ctx, secret)
	require.ErrorIs(t, err, artifact.ErrGone)
	_, err = tokens.Lookup(ctx, secret)
	require.NoError(t, err, "it is still known whose it was")

	clock.now = clock.now.Add(8 * 24 * time.Hour)
	n, err := tokens.Clean(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = tokens.Redeem(ctx, secret)
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestLastDownloadIsGivenOnce(t *testing.T) {
	ctx := context.Background()
	tokens, _, _ := newTokens()
	secret, _, err := tokens.Issue(ctx, "a1", time.Hour, 3)
	require.NoError(t, err)
	var good, gone atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			switch _, err := tokens.Count(ctx, secret); {
			case err == nil:
				good.Add(1)
			case errors.Is(err, artifact.ErrGone):
				gone.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []int32{3, 7}, []int32{good.Load(), gone.Load()})
	_, err = tokens.Redeem(ctx, secret)
	require.ErrorIs(t, err, artifact.ErrGone)
}

func TestRevoke(t *testing.T) {
	ctx := context.Background()
	tokens, _, _ := newTokens()
	issue := func(id string) string {
		s, _, err := tokens.Issue(ctx, id, time.Hour, 0)
		require.NoError(t, err)
		return s
	}
	gone := func(secrets ...string) {
		t.Helper()
		for _, s := range secrets {
			_, err := tokens.Redeem(ctx, s)
			require.ErrorIs(t, err, artifact.ErrGone)
		}
	}
	one, two, three, four := issue("a1"), issue("a1"), issue("a1"), issue("a2")
	tok, err := tokens.Revoke(ctx, one)
	require.NoError(t, err)
	require.NotNil(t, tok.RevokedAt)
	again, err := tokens.Revoke(ctx, one)
	require.NoError(t, err)
	require.Equal(t, tok.RevokedAt, again.RevokedAt)
	gone(one)

	n, err := tokens.RevokeArtifact(ctx, "a1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	gone(two, three)
	_, err = tokens.Redeem(ctx, four)
	require.NoError(t, err)
	_, err = tokens.RevokeArtifact(ctx, "")
	require.ErrorIs(t, err, session.ErrInvalid)

	n, err = tokens.RevokeSession(ctx, "s2")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	gone(four)
	n, err = tokens.RevokeSession(ctx, "")
	require.NoError(t, err)
	require.Zero(t, n)
	all, err := tokens.List(ctx, "s1", "")
	require.NoError(t, err)
	require.Len(t, all, 3)
}

// The link of what is no artifact any more is good for nothing; its bytes are still the owner's to get.
func TestRedeemOfWhatIsNoArtifact(t *testing.T) {
	ctx := context.Background()
	for name, take := range map[string]func(b *bench, id string){
		"removed": func(b *bench, id string) {
			_, err := b.library.Remove(ctx, id)
			require.NoError(t, err)
		},
		"withdrawn": func(b *bench, _ string) { require.NoError(t, b.tree.SetIntent("/a", []byte("false"))) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.tree.Write("/a", "1", by("A"))
			b.end("A")
			id := b.list(all)[0].ID
			tokens := artifact.NewTokens(memstore.NewTokens(), b.library, artifact.TokenConfig{})
			secret, _, err := tokens.Issue(ctx, id, time.Hour, 0)
			require.NoError(t, err)
			_, err = tokens.Redeem(ctx, secret)
			require.NoError(t, err)
			take(b, id)
			tok, err := tokens.Redeem(ctx, secret)
			require.ErrorIs(t, err, artifact.ErrGone)
			require.ErrorIs(t, err, artifact.ErrRemoved)
			require.Equal(t, id, tok.ArtifactID)
			c, err := b.library.Open(ctx, id)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		})
	}
}
