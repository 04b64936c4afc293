package integration

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is an artifact or write object as vfsctl prints it (INTERFACE.md).
type row struct {
	ID                string
	Path              string
	PathEscaped       bool
	FileName          string
	Size              int64
	MimeType          string
	ToolUseID         string
	DeclaredToolUseID string
	ExecutionID       string
	SessionID         string
	Version           int
	Attribution       string
	Source            string
	Candidates        []string
	Late              bool
	Open              bool
	Final             bool
	DerivedFrom       string
	State             string
	Artifact          bool
	Reason            string
}

func (d *daemon) rows(args ...string) []row {
	d.t.Helper()
	return decode[[]row](d.t, d.ctl(append(args, "--json")...))
}

func (d *daemon) artifacts(args ...string) []row {
	d.t.Helper()
	return d.rows(append([]string{"artifacts", "list"}, args...)...)
}

func (d *daemon) writes(args ...string) []row {
	d.t.Helper()
	return d.rows(append([]string{"writes"}, args...)...)
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// paths returns the paths of rows, in their order.
func paths(rows []row) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.Path)
	}
	return out
}

// byPath returns the one row of that path.
func byPath(t *testing.T, rows []row, path string) row {
	t.Helper()
	var found []row
	for _, r := range rows {
		if r.Path == path {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "rows of %s among %v", path, paths(rows))
	return found[0]
}
