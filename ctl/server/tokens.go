package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (s *Server) issueToken(r request) (any, error) {
	q, err := decode[ctl.TokenRequest](r)
	if err != nil {
		return nil, err
	}
	if err := s.mayIssue(q); err != nil {
		return nil, err
	}
	v, err := s.visible(r, q.ArtifactID)
	if err != nil {
		return nil, err
	}
	if v.Final && v.State != artifact.Live {
		return nil, fmt.Errorf("%w: %s: artifact %s: a link would serve nothing", artifact.ErrGone, v.State, v.ID)
	}
	secret, t, err := s.Tokens.Issue(r.Context(), q.ArtifactID, time.Duration(q.TTLSeconds)*time.Second, q.MaxDownloads)
	if err != nil {
		return nil, err
	}
	return ctl.IssuedToken{
		Token: secret, URL: s.link(secret, wireArtifact(v).FileName), ExpiresAt: t.ExpiresAt.UTC(),
		ArtifactID: t.ArtifactID, MaxDownloads: t.MaxDownloads,
	}, nil
}

// maxTTLSeconds keeps a duration in nanoseconds from running over; the configured cap is far below.
const maxTTLSeconds = 100 * 365 * 24 * 3600

func (s *Server) mayIssue(q ctl.TokenRequest) error {
	switch {
	case s.cfg.PublicURL == "":
		return fmt.Errorf("%w: this daemon serves no links: start it with --http ADDR", session.ErrConflict)
	case q.TTLSeconds <= 0 || q.TTLSeconds > maxTTLSeconds:
		return fmt.Errorf("%w time to live: %d seconds, give a positive number", session.ErrInvalid, q.TTLSeconds)
	case q.MaxDownloads < 0:
		return fmt.Errorf("%w number of downloads: %d, give a positive number or none for no limit", session.ErrInvalid, q.MaxDownloads)
	}
	return nil
}

func (s *Server) link(secret, fileName string) string {
	return s.cfg.PublicURL + "/d/" + secret + "/" + url.PathEscape(fileName)
}

func (s *Server) listTokens(r request) (any, error) {
	all, err := s.tokensOf(r, r.query("session"), r.query("artifact"))
	if err != nil {
		return nil, err
	}
	return page(r, all, wireToken)
}

func (s *Server) tokensOf(r request, sessionID, artifactID string) ([]artifact.Token, error) {
	if artifactID != "" {
		v, err := s.visible(r, artifactID)
		if err != nil {
			return nil, err
		}
		return s.Tokens.List(r.Context(), v.SessionID, artifactID)
	}
	ids, err := s.sessionIDs(r, sessionID)
	if err != nil {
		return nil, err
	}
	var all []artifact.Token
	for _, id := range ids {
		ts, err := s.Tokens.List(r.Context(), id, "")
		if err != nil {
			return nil, err
		}
		all = append(all, ts...)
	}
	// In one order over all sessions, so that a token made between two pages comes last.
	slices.SortFunc(all, func(a, b artifact.Token) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	return all, nil
}

// sessionIDs returns the session of that id, or all that the caller may see for "".
func (s *Server) sessionIDs(r request, id string) ([]string, error) {
	if id != "" {
		id, err := s.sessionID(r, id, "")
		return []string{id}, err
	}
	all, err := s.Sessions.Sessions(r.Context(), r.caller)
	var ids []string
	for _, v := range all {
		ids = append(ids, v.ID)
	}
	return ids, err
}

func (s *Server) revokeTokens(r request) (any, error) {
	q, err := decode[ctl.RevokeRequest](r)
	if err != nil {
		return nil, err
	}
	n, err := s.revoke(r, q)
	return ctl.Revoked{Revoked: n}, err
}

func (s *Server) revoke(r request, q ctl.RevokeRequest) (int, error) {
	switch {
	case q.Token != "" && q.ArtifactID == "" && !q.All:
		return 1, s.revokeOne(r, q.Token)
	case q.ArtifactID != "" && q.Token == "" && !q.All:
		if _, err := s.visible(r, q.ArtifactID); err != nil {
			return 0, err
		}
		return s.Tokens.RevokeArtifact(r.Context(), q.ArtifactID)
	case q.All && q.Token == "" && q.ArtifactID == "":
		return s.revokeAll(r, q.SessionID)
	}
	return 0, fmt.Errorf("%w revocation: name a token, an artifact or all", session.ErrInvalid)
}

// revokeOne revokes the token of a secret. Who has the secret of another's session holds a link, not
// a right over it.
func (s *Server) revokeOne(r request, secret string) error {
	t, err := s.Tokens.Lookup(r.Context(), secret)
	if err == nil {
		_, err = s.Sessions.Session(r.Context(), r.caller, t.SessionID)
	}
	if errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("this token: %w", session.ErrNotFound)
	}
	if err != nil {
		return err
	}
	_, err = s.Tokens.Revoke(r.Context(), secret)
	return err
}

func (s *Server) revokeAll(r request, sessionID string) (int, error) {
	ids, err := s.sessionIDs(r, sessionID)
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, id := range ids {
		n, err := s.Tokens.RevokeSession(r.Context(), id)
		if sum += n; err != nil {
			return sum, err
		}
	}
	return sum, nil
}
