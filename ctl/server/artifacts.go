package server

import (
	"errors"
	"fmt"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (s *Server) listArtifacts(r request) (any, error) {
	forks, err := r.flag("forks", true)
	if err != nil {
		return nil, err
	}
	all, err := r.flag("all", false)
	if err != nil {
		return nil, err
	}
	return listing(s, r, artifact.ListQuery{NoForks: !forks, All: all}, wireArtifact)
}

func (s *Server) listWrites(r request) (any, error) {
	return listing(s, r, artifact.ListQuery{Writes: true, All: true}, wireWrite)
}

// listing completes q by the parameters that both listings have and answers with a page.
func listing[W any](s *Server, r request, q artifact.ListQuery, wire func(artifact.View) W) (any, error) {
	var err error
	if q.From, err = r.number("from"); err != nil {
		return nil, err
	}
	if q.Limit, err = r.limit(); err != nil {
		return nil, err
	}
	q.ExecutionID, q.ToolUseID = r.query("execution"), r.query("toolUse")
	if q.SessionID, err = s.sessionID(r, r.query("session"), q.ExecutionID); err != nil {
		return nil, err
	}
	l, err := s.Artifacts.List(r.Context(), q)
	if err != nil {
		return nil, err
	}
	p := ctl.Page[W]{Items: []W{}, Next: l.NextFrom}
	for _, v := range l.Views {
		p.Items = append(p.Items, wire(v))
	}
	return p, nil
}

// visible returns an artifact of a session that the caller may see. What does not exist and what is
// not theirs is told with the same words.
func (s *Server) visible(r request, id string) (artifact.View, error) {
	if err := session.CheckID("artifact", id); err != nil {
		return artifact.View{}, err
	}
	v, err := s.Artifacts.Show(r.Context(), id)
	if err == nil {
		_, err = s.Sessions.Session(r.Context(), r.caller, v.SessionID)
	}
	if errors.Is(err, session.ErrNotFound) {
		return artifact.View{}, fmt.Errorf("artifact %.60q: %w", id, session.ErrNotFound)
	}
	return v, err
}

func (s *Server) showArtifact(r request) (any, error) {
	v, err := s.visible(r, r.PathValue("id"))
	return wireArtifact(v), err
}

func (s *Server) addArtifact(r request) (any, error) {
	q, err := decode[ctl.AddRequest](r)
	if err != nil {
		return nil, err
	}
	p, err := change.UnescapePath(q.Path, q.PathEscaped)
	if err != nil {
		return nil, err
	}
	id, err := s.sessionID(r, q.SessionID, "")
	if err != nil {
		return nil, err
	}
	v, err := s.Artifacts.Add(r.Context(), id, p, q.ToolUseID)
	return wireArtifact(v), err
}

func (s *Server) removeArtifact(r request) (any, error) {
	if _, err := s.visible(r, r.PathValue("id")); err != nil {
		return nil, err
	}
	v, err := s.Artifacts.Remove(r.Context(), r.PathValue("id"))
	return wireArtifact(v), err
}

func (s *Server) listVersions(r request) (any, error) {
	escaped, err := r.flag("pathEscaped", false)
	if err != nil {
		return nil, err
	}
	p, err := change.UnescapePath(r.query("path"), escaped)
	if err != nil {
		return nil, err
	}
	id, err := s.sessionID(r, r.query("session"), "")
	if err != nil {
		return nil, err
	}
	all, err := s.Artifacts.Versions(r.Context(), id, p)
	if err != nil {
		return nil, err
	}
	return page(r, all, wireArtifact)
}
