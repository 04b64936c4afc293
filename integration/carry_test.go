package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The artifacts of an ended tool use stay with the user when a later one, or nobody's shell, renames the
// directory that they are in.
func TestRenamedDirectoryKeepsItsArtifacts(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `mkdir -p out/sub; echo 1 > out/a.csv; echo 2 > out/sub/b.csv; echo 3 > out/make.py`)
	first := d.artifacts()
	require.Equal(t, []string{"/out/a.csv", "/out/sub/b.csv"}, paths(first))
	d.tool("call_2", `mv out report-final`)
	second := d.artifacts()
	require.Equal(t, []string{"/report-final/a.csv", "/report-final/sub/b.csv"}, paths(second))
	for i, r := range second {
		require.Equal(t, "call_2", r.ToolUseID)
		require.Equal(t, first[i].ID, r.DerivedFrom)
		require.True(t, r.Final)
		require.Equal(t, "exact", r.Attribution)
	}
	d.sh(`mv report-final handed-over`)
	d.kill()
	d.start()
	d.sh(`mkdir other; echo 9 > other/c.csv`)
	third := d.artifacts()
	require.Contains(t, paths(third), "/other/c.csv")
	d.ctl("check")
	d.stop()
	d.start()
	d.sh(`mv other else`)
	require.Contains(t, paths(d.artifacts()), "/else/c.csv")
	d.ctl("check")
}

func TestRenamedDirectoryOfNobodyAndRestart(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `mkdir out; echo 1 > out/a.csv`)
	d.sh(`mv out moved`)
	r := byPath(t, d.artifacts(), "/moved/a.csv")
	require.Equal(t, "none", r.Attribution)
	require.NotEmpty(t, r.DerivedFrom)
	d.kill()
	d.start()
	require.Equal(t, r.ID, byPath(t, d.artifacts(), "/moved/a.csv").ID)
	d.tool("call_2", `mkdir new; echo 2 > new/n.csv; mv --exchange -T new moved 2>/dev/null || python3 -c '
import ctypes; assert ctypes.CDLL(None).renameat2(-100, b"new", -100, b"moved", 2) == 0'`)
	require.ElementsMatch(t, []string{"/new/a.csv", "/moved/n.csv"}, paths(d.artifacts()))
	require.Equal(t, r.ID, byPath(t, d.artifacts(), "/new/a.csv").ID, "an entry that is open moves along")
	d.ctl("check")
}
