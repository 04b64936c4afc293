package integration

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFourToolUsesAtOnce(t *testing.T) {
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		const uses, files = 4, 200
		var wg sync.WaitGroup
		for u := range uses {
			wg.Go(func() {
				d.tool(fmt.Sprintf("call_%d", u), fmt.Sprintf(
					`for i in $(seq %d); do echo %d > out-%d-$i.txt; done`, files, u, u))
			})
		}
		wg.Wait()
		rows := d.writes()
		require.Len(t, rows, uses*files)
		for _, r := range rows {
			var u, i int
			_, err := fmt.Sscanf(r.Path, "/out-%d-%d.txt", &u, &i)
			require.NoError(t, err, r.Path)
			require.Equal(t, fmt.Sprintf("call_%d", u), r.ToolUseID, r.Path)
			require.Equal(t, "exact", r.Attribution, r.Path)
		}
	})
}

func TestOrdinaryTools(t *testing.T) {
	cases := []struct {
		name, before, script string
		want                 map[string]int64 // artifacts of the tool use: path and size
	}{
		{"redirect", "", `echo hello > a.txt`, map[string]int64{"/a.txt": 6}},
		{"append", `echo one > a.txt`, `echo two >> a.txt`, map[string]int64{"/a.txt": 8}},
		{"pipeline", "", `seq 10 | sort -r | tee a.txt | wc -l > b.txt`, map[string]int64{"/a.txt": 21, "/b.txt": 3}},
		{"sed in place", `echo one > a.txt`, `sed -i s/one/three/ a.txt`, map[string]int64{"/a.txt": 6}},
		{"temporary then rename", "", `echo x > .a.tmp; mv .a.tmp a.txt`, map[string]int64{"/a.txt": 2}},
		{"copy", `echo one > a.txt`, `cp a.txt b.txt`, map[string]int64{"/b.txt": 4}},
		{"written and removed", "", `echo x > a.txt; rm a.txt; echo y > b.txt`, map[string]int64{"/b.txt": 2}},
		{"moved within", "", `echo x > a.txt; mkdir d; mv a.txt d/b.txt`, map[string]int64{"/d/b.txt": 2}},
		{"directory renamed", "", `mkdir d; echo x > d/a.txt; mv d e; echo yy > e/b.txt`, map[string]int64{"/e/a.txt": 2, "/e/b.txt": 3}},
		{"only read", `echo one > a.txt`, `cat a.txt; grep -c one < a.txt`, nil},
		{"opened, not written", `echo one > a.txt`, `exec 3<> a.txt; exec 3>&-`, nil},
		{"a directory and a link", "", `mkdir d; ln -s d l; mkfifo p`, nil},
		{"python", "", `python3 -c "open('a.txt', 'w').write('x' * 100000)"`, map[string]int64{"/a.txt": 100000}},
		{"mapped", `head -c 8192 /dev/zero > a.bin`, `python3 -c "
import mmap
with open('a.bin', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m: m[5000] = 65"`, map[string]int64{"/a.bin": 8192}},
		{"tar", `mkdir in && echo one > in/a.txt && tar cf /tmp/$$.tar in && mv /tmp/$$.tar ../in.tar && rm -r in`,
			`tar xf ../in.tar`, map[string]int64{"/in/a.txt": 4}},
		{"without environment", "", `env -i /bin/sh -c 'echo hello > a.txt'`, map[string]int64{"/a.txt": 6}},
		{"in a new session", "", `setsid --wait sh -c 'echo hello > a.txt'`, map[string]int64{"/a.txt": 6}},
		{"hard link", "", `echo x > a.txt; ln a.txt b.txt; rm a.txt`, map[string]int64{"/b.txt": 2}},
	}
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				d := d.with(t)
				d.sh(`find . -mindepth 1 -delete`)
				if c.before != "" {
					d.tool(fmt.Sprintf("before_%d", i), c.before)
				}
				id := fmt.Sprintf("call_%d", i)
				d.tool(id, c.script)
				got := map[string]int64{}
				for _, r := range d.artifacts("--tool-use", id) {
					require.Equal(t, "exact", r.Attribution)
					require.True(t, r.Final)
					require.Equal(t, "live", r.State)
					got[r.Path] = r.Size
				}
				want := c.want
				if want == nil {
					want = map[string]int64{}
				}
				require.Equal(t, want, got)
			})
		}
	})
}

func TestFiveAnswers(t *testing.T) {
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)

		d.write("none.txt", "x")
		d.sh(`echo x > declared.txt`, "VFSD_TOOL_USE_ID=call_env")
		d.tool("call_run", `echo x > exact.txt`)
		d.ctl("tool", "begin", "call_a")
		d.write("window.txt", "x")
		d.ctl("tool", "begin", "call_b")
		d.write("ambiguous.txt", "x")
		d.ctl("tool", "end", "call_a")
		d.ctl("tool", "end", "call_b")

		rows := d.writes()
		require.Len(t, rows, 5)
		none := byPath(t, rows, "/none.txt")
		require.Equal(t, "none", none.Attribution)
		require.Empty(t, none.ToolUseID)
		declared := byPath(t, rows, "/declared.txt")
		require.Equal(t, [3]string{"declared", "environment", "call_env"}, [3]string{declared.Attribution, declared.Source, declared.ToolUseID})
		exact := byPath(t, rows, "/exact.txt")
		require.Equal(t, [2]string{"exact", "call_run"}, [2]string{exact.Attribution, exact.ToolUseID})
		window := byPath(t, rows, "/window.txt")
		require.Equal(t, [3]string{"window", "window", "call_a"}, [3]string{window.Attribution, window.Source, window.ToolUseID})
		ambiguous := byPath(t, rows, "/ambiguous.txt")
		require.Equal(t, "ambiguous", ambiguous.Attribution)
		require.Empty(t, ambiguous.ToolUseID)
		require.ElementsMatch(t, []string{"call_a", "call_b"}, ambiguous.Candidates)
	})
}

func TestDisagreementKeepsTheDeclaredID(t *testing.T) {
	d := startMount(t)
	d.tool("call_real", `VFSD_TOOL_USE_ID=call_lie sh -c 'echo x > a.txt'`)
	r := byPath(t, d.writes(), "/a.txt")
	require.Equal(t, "exact", r.Attribution)
	require.Equal(t, "call_real", r.ToolUseID)
	require.Equal(t, "call_lie", r.DeclaredToolUseID)
}

func TestLateWriteKeepsItsAuthor(t *testing.T) {
	d := startMount(t)
	// The job outlives its tool use: it waits for the file that this test makes after the end.
	d.tool("call_1", `(while [ ! -e go ]; do sleep 0.05; done; echo late > late.txt; echo > done) >/dev/null 2>&1 &`)
	d.write("go", "")
	d.sh(`for i in $(seq 200); do [ -e done ] && exit; sleep 0.05; done; exit 1`)
	r := byPath(t, d.writes(), "/late.txt")
	require.Equal(t, "call_1", r.ToolUseID)
	require.Equal(t, "exact", r.Attribution)
	require.True(t, r.Late)
}

func TestRunIsInvisible(t *testing.T) {
	d := startMount(t)
	for _, c := range []struct {
		script string
		status int
	}{
		{`exit 0`, 0}, {`exit 7`, 7}, {`kill -TERM $$`, 128 + 15}, {`kill -KILL $$`, 128 + 9},
	} {
		status, _ := d.ctlStatus("run", "--tool-use", "call_"+fmt.Sprint(c.status), "--", "sh", "-c", c.script)
		require.Equal(t, c.status, status, c.script)
	}
	status, message := d.ctlStatus("run", "--tool-use", "missing", "--", "/no/such/program")
	require.Equal(t, 127, status, message)
	status, message = d.ctlStatus("run", "--tool-use", "plain", "--", d.socket)
	require.Equal(t, 126, status, message)
	status, message = d.ctlStatus("run", "--tool-use", "call_0", "--", "true")
	require.Equal(t, 125, status, message)
	require.Equal(t, "in\n", d.sh(`echo in | vfsctl run --tool-use stdin -- cat`))
}
