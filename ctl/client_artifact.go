package ctl

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"aimon.at/vfsd/change"
)

// Artifacts returns what f selects: the final ones in order of finality, then the open ones.
func (c *Client) Artifacts(ctx context.Context, f ArtifactFilter) ([]Artifact, error) {
	return list[Artifact](ctx, c, "/v1/artifacts", f.query())
}

// Writes returns every recorded write of the session, or of one of its tool uses.
func (c *Client) Writes(ctx context.Context, sessionID, toolUseID string) ([]Write, error) {
	return list[Write](ctx, c, "/v1/writes", values("session", sessionID, "toolUse", toolUseID))
}

func (f ArtifactFilter) query() url.Values {
	q := values("session", f.SessionID, "execution", f.ExecutionID, "toolUse", f.ToolUseID)
	if f.NoForks {
		q.Set("forks", "false")
	}
	if f.All {
		q.Set("all", "true")
	}
	if f.From > 0 {
		q.Set("from", strconv.FormatUint(f.From, 10))
	}
	return q
}

// Artifact returns one artifact.
func (c *Client) Artifact(ctx context.Context, id string) (Artifact, error) {
	p, err := element("artifacts", "artifact", id)
	if err != nil {
		return Artifact{}, err
	}
	return get[Artifact](ctx, c, p, nil)
}

// Content writes an artifact's bytes to w. Where it fails, what was written is not the whole.
func (c *Client) Content(ctx context.Context, id string, w io.Writer) error {
	p, err := element("artifacts", "artifact", id)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodGet, p+"/content", nil, nil, func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// AddArtifact makes the file at path, in the mount, an artifact.
func (c *Client) AddArtifact(ctx context.Context, sessionID, path, toolUseID string) (Artifact, error) {
	r := AddRequest{SessionID: sessionID, ToolUseID: toolUseID}
	r.Path, r.PathEscaped = change.EscapePath(path)
	return send[Artifact](ctx, c, http.MethodPost, "/v1/artifacts", nil, r)
}

// RemoveArtifact takes an artifact out of the collector; the file stays.
func (c *Client) RemoveArtifact(ctx context.Context, id string) (Artifact, error) {
	p, err := element("artifacts", "artifact", id)
	if err != nil {
		return Artifact{}, err
	}
	return send[Artifact](ctx, c, http.MethodDelete, p, nil, nil)
}

// Versions returns the final artifacts of one path, oldest first.
func (c *Client) Versions(ctx context.Context, sessionID, path string) ([]Artifact, error) {
	q := values("session", sessionID)
	p, escaped := change.EscapePath(path)
	q.Set("path", p)
	if escaped {
		q.Set("pathEscaped", "true")
	}
	return list[Artifact](ctx, c, "/v1/versions", q)
}

// IssueToken makes a download link.
func (c *Client) IssueToken(ctx context.Context, r TokenRequest) (IssuedToken, error) {
	return send[IssuedToken](ctx, c, http.MethodPost, "/v1/tokens", nil, r)
}

// Tokens returns the tokens of one artifact, or of a session, or of all the caller's for "" and "".
func (c *Client) Tokens(ctx context.Context, sessionID, artifactID string) ([]Token, error) {
	return list[Token](ctx, c, "/v1/tokens", values("session", sessionID, "artifact", artifactID))
}

// RevokeTokens revokes tokens and returns how many.
func (c *Client) RevokeTokens(ctx context.Context, r RevokeRequest) (int, error) {
	v, err := send[Revoked](ctx, c, http.MethodPost, "/v1/tokens/revoke", nil, r)
	return v.Revoked, err
}
