package integration

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "aimon.at/vfsd"

// TestTheHouse keeps the arrows between packages (docs/design.md): each heavy library has one importer,
// and the control CLI, which starts for every tool call, links none of them.
func TestTheHouse(t *testing.T) {
	only := map[string]string{
		"github.com/dgraph-io/badger": module + "/index",
		"github.com/hanwen/go-fuse":   module + "/fusefs",
		"github.com/minio/minio-go":   module + "/backends/s3",
	}
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../...") {
		pkg, imports, _ := strings.Cut(line, " ")
		for _, i := range strings.Fields(imports) {
			for library, importer := range only {
				if strings.HasPrefix(i, library) {
					require.True(t, pkg == importer || strings.HasPrefix(pkg, importer+"/"), "%s imports %s", pkg, i)
				}
			}
		}
	}
	for _, i := range goList(t, "-deps", "../cmd/vfsctl") {
		for library := range only {
			require.False(t, strings.HasPrefix(i, library), "vfsctl links %s", i)
		}
		require.NotContains(t, []string{module + "/index", module + "/fusefs", module + "/artifact"}, i)
	}
}

// TestArrows keeps what is below from knowing what is above it.
func TestArrows(t *testing.T) {
	below := map[string][]string{
		"change":            {"session"},
		"session":           nil,
		"attribution":       {"session", "attribution"},
		"artifact":          {"session", "change", "artifact"},
		"backends/worktree": {"session", "change"},
		"fusefs":            {"session", "change", "backends/worktree", "fusefs"},
		"index":             {"session", "change", "artifact"},
		"ctl":               {"session", "change"},
		"ctl/server":        {"session", "change", "artifact", "ctl"},
		"gateway":           {"session", "change", "artifact"},
	}
	for pkg, allowed := range below {
		for _, i := range goList(t, "-f", `{{join .Imports "\n"}}`, "../"+pkg) {
			name, ours := strings.CutPrefix(i, module+"/")
			if !ours {
				continue
			}
			ok := false
			for _, a := range allowed {
				ok = ok || name == a || strings.HasPrefix(name, a+"/")
			}
			require.True(t, ok, "%s imports %s", pkg, name)
		}
	}
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
