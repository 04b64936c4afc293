package server

import (
	"encoding/hex"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// Here the daemon's values become those on the wire. Times go out in UTC whatever zone the daemon
// was started in.

func wireMount(m Mount) ctl.Mount {
	return ctl.Mount{
		Mountpoint: m.Mountpoint, Source: m.Source, SessionID: m.SessionID, Owner: m.Owner,
		ArtifactsDefault: m.Artifacts, Passthrough: m.Passthrough, Since: m.Since.UTC(), Pending: m.Pending, Detached: m.Detached,
	}
}

func wireSession(s session.Session) ctl.Session {
	return ctl.Session{
		ID: s.ID, Owner: s.Owner, Source: s.Source, ArtifactsDefault: s.Artifacts, CreatedAt: s.CreatedAt.UTC(),
	}
}

func wireExecution(e session.Execution) ctl.Execution {
	return ctl.Execution{
		ID: e.ID, SessionID: e.SessionID, ParentID: e.ParentID, Implicit: e.Implicit,
		ArtifactsDefault: e.Artifacts, Status: e.Status, BeganAt: e.BeganAt.UTC(), EndedAt: utc(e.EndedAt),
	}
}

func wireToolUse(t session.ToolUse) ctl.ToolUse {
	w := ctl.ToolUse{
		ID: t.ID, SessionID: t.SessionID, ExecutionID: t.ExecutionID, Origin: t.Origin, Artifact: t.Artifact,
		Cgroup: t.Cgroup, BeganAt: t.BeganAt.UTC(), EndedAt: utc(t.EndedAt),
	}
	if t.Process != nil {
		w.PID = t.Process.PID
	}
	return w
}

func wireArtifact(v artifact.View) ctl.Artifact {
	a := ctl.Artifact{
		ID: v.ID, Size: v.Stamp.Size, MimeType: v.MimeType,
		ToolUseID: v.Who.ToolUseID, DeclaredToolUseID: v.Who.DeclaredToolUseID,
		ExecutionID: v.Who.ExecutionID, SessionID: v.SessionID, Version: v.Version,
		Attribution: v.Who.Sureness, Source: v.Who.Source, Candidates: v.Who.Candidates, Late: v.Who.Late,
		Open: v.OpenAtEnd, Final: v.Final, DerivedFrom: v.DerivedFrom,
		State: string(v.State), LostReason: v.LostReason, CreatedAt: v.CreatedAt.UTC(),
	}
	a.Path, a.FileName, a.PathEscaped = artifact.ShownNames(v.Path())
	return a
}

func wireWrite(v artifact.View) ctl.Write {
	w := ctl.Write{
		ID: v.ID, Size: v.Stamp.Size, SessionID: v.SessionID, ExecutionID: v.Who.ExecutionID,
		ToolUseID: v.Who.ToolUseID, DeclaredToolUseID: v.Who.DeclaredToolUseID,
		Attribution: v.Who.Sureness, Source: v.Who.Source, Candidates: v.Who.Candidates,
		Late: v.Who.Late, Final: v.Final, Artifact: v.Artifact && !v.Removed, Reason: v.Reason, At: v.CreatedAt.UTC(),
	}
	w.Path, w.PathEscaped = change.EscapePath(v.Path())
	return w
}

// hashDigits is how much of a token's hash names it in listings.
const hashDigits = 16

func wireToken(t artifact.Token) ctl.Token {
	return ctl.Token{
		ID: hex.EncodeToString(t.Hash[:])[:hashDigits], ArtifactID: t.ArtifactID, SessionID: t.SessionID,
		State: tokenState(t, time.Now()), CreatedAt: t.CreatedAt.UTC(), ExpiresAt: t.ExpiresAt.UTC(),
		MaxDownloads: t.MaxDownloads, Downloads: t.Downloads, RevokedAt: utc(t.RevokedAt),
	}
}

func tokenState(t artifact.Token, now time.Time) string {
	switch {
	case t.RevokedAt != nil:
		return "revoked"
	case !now.Before(t.ExpiresAt):
		return "expired"
	case t.MaxDownloads > 0 && t.Downloads >= t.MaxDownloads:
		return "used up"
	}
	return "active"
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
