package server

import (
	"fmt"

	"aimon.at/vfsd/session"
)

var paged = []string{"limit", "from"}

func with(params []string, more ...string) []string { return append(more, params...) }

func (s *Server) routes() []route {
	return []route{
		{"GET /v1/status", nil, s.status},
		{"POST /v1/check", nil, s.check},

		{"GET /v1/mounts", paged, s.listMounts},
		{"POST /v1/mounts", nil, s.mount},
		{"DELETE /v1/mounts", []string{"mountpoint"}, s.unmount},

		{"GET /v1/sessions", paged, s.listSessions},
		{"GET /v1/sessions/{id}", nil, s.showSession},
		{"DELETE /v1/sessions/{id}", nil, s.deleteSession},

		{"GET /v1/executions", with(paged, "session"), s.listExecutions},
		{"POST /v1/executions", nil, s.beginExecution},
		{"GET /v1/executions/{id}", []string{"session"}, s.showExecution},
		{"POST /v1/executions/{id}/mark", []string{"session"}, s.markExecution},
		{"POST /v1/executions/{id}/end", []string{"session"}, s.endExecution},

		{"GET /v1/tool-uses", with(paged, "session"), s.listToolUses},
		{"POST /v1/tool-uses", nil, s.beginToolUse},
		{"POST /v1/tool-uses/end", nil, s.endToolUse},

		{"GET /v1/artifacts", with(paged, "session", "execution", "forks", "toolUse", "all"), s.listArtifacts},
		{"POST /v1/artifacts", nil, s.addArtifact},
		{"GET /v1/artifacts/{id}", nil, s.showArtifact},
		{"DELETE /v1/artifacts/{id}", nil, s.removeArtifact},
		{"GET /v1/artifacts/{id}/content", nil, s.artifactContent},
		{"GET /v1/versions", with(paged, "session", "path", "pathEscaped"), s.listVersions},
		{"GET /v1/writes", with(paged, "session", "execution", "toolUse"), s.listWrites},

		{"GET /v1/tokens", with(paged, "session", "artifact"), s.listTokens},
		{"POST /v1/tokens", nil, s.issueToken},
		{"POST /v1/tokens/revoke", nil, s.revokeTokens},

		{"/", nil, unknownRoute},
	}
}

func unknownRoute(r request) (any, error) {
	return nil, fmt.Errorf("%s %.80q: %w: no such resource or verb", r.Method, r.URL.Path, session.ErrNotFound)
}
