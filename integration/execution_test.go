package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExecutionsMarksAndForks(t *testing.T) {
	d := startMount(t)
	turn := strings.TrimSpace(d.ctl("execution", "begin", "--id", "turn-1"))
	require.Equal(t, "turn-1", turn)
	d.tool("call_1", `echo x > one.txt`)
	mark := strings.TrimSpace(d.ctl("execution", "mark", turn))
	d.tool("call_2", `echo x > two.txt`)

	fork := strings.TrimSpace(d.ctl("execution", "begin", "--parent", turn))
	d.tool("call_3", `echo x > three.txt`, "--execution", fork)
	require.Equal(t, []string{"/three.txt"}, paths(d.artifacts("--execution", fork)))
	require.ElementsMatch(t, []string{"/one.txt", "/two.txt", "/three.txt"}, paths(d.artifacts("--execution", turn)))
	require.ElementsMatch(t, []string{"/one.txt", "/two.txt"}, paths(d.artifacts("--execution", turn, "--no-forks")))
	require.ElementsMatch(t, []string{"/two.txt", "/three.txt"}, paths(d.artifacts("--execution", turn, "--from", mark)))
	require.Empty(t, d.artifacts("--execution", turn, "--from", "999999"))
	require.Equal(t, fork, byPath(t, d.artifacts("--execution", turn), "/three.txt").ExecutionID)

	d.ctl("execution", "end", fork, "--status", "COMPLETED")
	ended := decode[struct {
		ID        string
		Status    string
		Artifacts []row
	}](t, d.ctl("execution", "end", turn, "--status", "ERROR", "--json"))
	require.Equal(t, "ERROR", ended.Status)
	require.Len(t, ended.Artifacts, 3)
}

func TestArtifactsOnEveryEnd(t *testing.T) {
	d := startMount(t)
	for _, status := range []string{"COMPLETED", "TRUNCATED", "ERROR", "INTERRUPTED", "SUSPENDED", "MAX_ITERATIONS", "COMMAND"} {
		id := strings.TrimSpace(d.ctl("execution", "begin"))
		d.tool("call_"+status, `echo x > `+status+`.txt`)
		out := d.ctl("execution", "end", id, "--status", status, "--json")
		require.Contains(t, out, "/"+status+".txt")
	}
	code, message := d.ctlStatus("execution", "end", "no-such", "--status", "COMPLETED")
	require.Equal(t, 3, code, message)
	id := strings.TrimSpace(d.ctl("execution", "begin"))
	code, message = d.ctlStatus("execution", "end", id, "--status", "DONE")
	require.Equal(t, 2, code, message)
}

func TestRewrittenReplacedDeleted(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `echo one > a.txt; echo one > b.txt`)
	d.tool("call_2", `echo three > a.txt; rm b.txt`)
	all := d.artifacts("--all")
	require.Len(t, all, 3)
	states := map[string]string{}
	for _, r := range all {
		states[r.ToolUseID+r.Path] = r.State
	}
	require.Equal(t, map[string]string{"call_1/a.txt": "replaced", "call_1/b.txt": "deleted", "call_2/a.txt": "live"}, states)
	versions := d.rows("artifacts", "versions", "/a.txt")
	require.Len(t, versions, 2)
	require.Equal(t, 2, versions[1].Version)
}

func TestMovedByAnotherToolUse(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `echo one > a.txt`)
	first := d.artifacts()[0]
	d.tool("call_2", `mv a.txt b.txt`)
	moved := byPath(t, d.artifacts("--all"), "/b.txt")
	require.Equal(t, "call_2", moved.ToolUseID)
	require.Equal(t, first.ID, moved.DerivedFrom)
	require.Equal(t, "deleted", byPath(t, d.artifacts("--all"), "/a.txt").State)
}

func TestHeldOpenAtTheEnd(t *testing.T) {
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		// The writer keeps the file open after its tool use ended.
		d.tool("call_1", `(exec 3> log.txt; echo one >&3; : > started; while [ ! -e go ]; do sleep 0.05; done; echo two >&3; exec 3>&-; : > done) >/dev/null 2>&1 &
			while [ ! -e started ]; do sleep 0.05; done`)
		r := byPath(t, d.artifacts(), "/log.txt")
		require.True(t, r.Final)
		require.True(t, r.Open)
		require.EqualValues(t, 4, r.Size)
		d.write("go", "")
		d.sh(`for i in $(seq 200); do [ -e done ] && exit; sleep 0.05; done; exit 1`)
		require.Eventually(t, func() bool {
			for _, r := range d.artifacts("--tool-use", "call_1") {
				if r.Path == "/log.txt" && r.Late && r.Size == 8 {
					return true
				}
			}
			return false
		}, commandDeadline, 50_000_000)
	})
}
