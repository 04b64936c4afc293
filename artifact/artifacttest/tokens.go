package artifacttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// TestTokens runs the suite of artifact.TokenStore. open returns a fresh, empty store for each case.
func TestTokens(t *testing.T, open func(t *testing.T) artifact.TokenStore) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s artifact.TokenStore)
	}{
		{"missing", testTokenMissing},
		{"every field comes back", testTokenFields},
		{"put replaces", testTokenReplace},
		{"update", testTokenUpdate},
		{"update that fails changes nothing", testTokenUpdateFails},
		{"updates never get lost", testTokenUpdatesRace},
		{"lists", testTokenLists},
		{"delete expired", testTokenExpired},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func token(n byte, sessionID, artifactID string) artifact.Token {
	return artifact.Token{
		Hash: [32]byte{0: 255 - n, 31: n}, ArtifactID: artifactID, SessionID: sessionID,
		CreatedAt: epoch.Add(time.Duration(n) * time.Second),
		ExpiresAt: epoch.Add(time.Duration(n) * time.Hour),
	}
}

func putTokens(t *testing.T, s artifact.TokenStore, tokens ...artifact.Token) {
	t.Helper()
	for _, token := range tokens {
		require.NoError(t, s.PutToken(context.Background(), token))
	}
}

func testTokenMissing(t *testing.T, s artifact.TokenStore) {
	ctx := context.Background()
	_, err := s.Token(ctx, [32]byte{1})
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = s.UpdateToken(ctx, [32]byte{1}, func(*artifact.Token) error { return nil })
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = s.Token(ctx, [32]byte{1})
	require.ErrorIs(t, err, session.ErrNotFound, "an update makes none")
}

func testTokenFields(t *testing.T, s artifact.TokenStore) {
	revoked := epoch.Add(time.Minute)
	want := token(1, "s1", "a1")
	want.MaxDownloads, want.Downloads, want.RevokedAt = 3, 2, &revoked
	putTokens(t, s, want)
	got, err := s.Token(context.Background(), want.Hash)
	require.NoError(t, err)
	require.True(t, want.CreatedAt.Equal(got.CreatedAt))
	require.True(t, want.ExpiresAt.Equal(got.ExpiresAt))
	require.NotNil(t, got.RevokedAt)
	require.True(t, revoked.Equal(*got.RevokedAt))
	got.CreatedAt, got.ExpiresAt, got.RevokedAt = want.CreatedAt, want.ExpiresAt, want.RevokedAt
	require.Equal(t, want, got)
}

func testTokenReplace(t *testing.T, s artifact.TokenStore) {
	first := token(1, "s1", "a1")
	changed := first
	changed.MaxDownloads = 5
	putTokens(t, s, first, changed)
	all, err := s.Tokens(context.Background(), "", "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, 5, all[0].MaxDownloads)
}

func testTokenUpdate(t *testing.T, s artifact.TokenStore) {
	ctx := context.Background()
	tok := token(1, "s1", "a1")
	putTokens(t, s, tok)
	got, err := s.UpdateToken(ctx, tok.Hash, func(t *artifact.Token) error { t.Downloads++; return nil })
	require.NoError(t, err)
	require.Equal(t, 1, got.Downloads)
	got, err = s.Token(ctx, tok.Hash)
	require.NoError(t, err)
	require.Equal(t, 1, got.Downloads)
}

func testTokenUpdateFails(t *testing.T, s artifact.TokenStore) {
	ctx := context.Background()
	tok, refused := token(1, "s1", "a1"), errors.New("refused")
	putTokens(t, s, tok)
	_, err := s.UpdateToken(ctx, tok.Hash, func(t *artifact.Token) error { t.Downloads = 9; return refused })
	require.ErrorIs(t, err, refused)
	got, err := s.Token(ctx, tok.Hash)
	require.NoError(t, err)
	require.Zero(t, got.Downloads)
}

func testTokenUpdatesRace(t *testing.T, s artifact.TokenStore) {
	tok := token(1, "s1", "a1")
	putTokens(t, s, tok)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := s.UpdateToken(context.Background(), tok.Hash, func(t *artifact.Token) error { t.Downloads++; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Token(context.Background(), tok.Hash)
	require.NoError(t, err)
	require.Equal(t, 16, got.Downloads)
}

func testTokenLists(t *testing.T, s artifact.TokenStore) {
	one, two, three := token(1, "s1", "a1"), token(2, "s2", "a2"), token(3, "s1", "a3")
	putTokens(t, s, three, one, two)
	for _, c := range []struct {
		name, sessionID, artifactID string
		want                        []artifact.Token
	}{
		{"all", "", "", []artifact.Token{one, two, three}},
		{"a session's", "s1", "", []artifact.Token{one, three}},
		{"an artifact's", "", "a2", []artifact.Token{two}},
		{"an artifact's in its session", "s1", "a3", []artifact.Token{three}},
		{"no such session", "s9", "", nil},
		{"no such artifact", "", "a9", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := s.Tokens(context.Background(), c.sessionID, c.artifactID)
			require.NoError(t, err)
			require.Len(t, found, len(c.want))
			for i, want := range c.want {
				require.Equal(t, want.Hash, found[i].Hash)
			}
		})
	}
}

func testTokenExpired(t *testing.T, s artifact.TokenStore) {
	ctx := context.Background()
	putTokens(t, s, token(1, "s1", "a1"), token(2, "s1", "a1"), token(3, "s1", "a1"))
	n, err := s.DeleteExpired(ctx, token(2, "", "").ExpiresAt)
	require.NoError(t, err)
	require.Equal(t, 1, n, "what expires at that moment stays")
	left, err := s.Tokens(ctx, "s1", "a1")
	require.NoError(t, err)
	require.Len(t, left, 2)
	n, err = s.DeleteExpired(ctx, epoch.Add(99*time.Hour))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	left, err = s.Tokens(ctx, "", "")
	require.NoError(t, err)
	require.Empty(t, left)
}
