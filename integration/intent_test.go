package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIntentOrder(t *testing.T) {
	cases := []struct {
		name, script string
		flags        []string
		artifact     bool
	}{
		{"undeclared", `echo x > a.txt`, nil, true},
		{"undeclared script", `echo x > a.py`, nil, false},
		{"own attribute on a script", `echo x > a.py; setfattr -n user.aimon.artifact -v true a.py`, nil, true},
		{"own attribute false", `echo x > a.txt; setfattr -n user.aimon.artifact -v false a.txt`, nil, false},
		{"own attribute beats the tool use", `echo x > a.txt; setfattr -n user.aimon.artifact -v YES a.txt`, []string{"--artifact", "false"}, true},
		{"nonsense counts as unset", `echo x > a.txt; setfattr -n user.aimon.artifact -v perhaps a.txt`, nil, true},
		{"tool use false", `echo x > a.txt`, []string{"--artifact", "false"}, false},
		{"tool use true on a script", `echo x > a.sh`, []string{"--artifact", "true"}, true},
		{"directory false", `mkdir d; setfattr -n user.aimon.artifact -v 0 d; mkdir d/e; echo x > d/e/a.txt`, nil, false},
		{"directory false beats the tool use", `mkdir d; setfattr -n user.aimon.artifact -v 0 d; echo x > d/a.txt`, []string{"--artifact", "true"}, false},
		{"nearer directory decides", `mkdir d d/e; setfattr -n user.aimon.artifact -v 0 d; setfattr -n user.aimon.artifact -v 1 d/e; echo x > d/e/a.py`, nil, true},
		{"dependency folder", `mkdir node_modules; echo x > node_modules/a.txt`, []string{"--artifact", "true"}, false},
		{"version control", `git init -q r; cd r; git -c user.name=n -c user.email=e@e commit -q --allow-empty -m m`, nil, false},
		{"ignore file", `echo '*.log' > .artifactignore; echo x > a.log`, []string{"--artifact", "true"}, false},
		{"editor swap file", `echo x > .a.txt.swp`, nil, false},
	}
	d := startMount(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := d.with(t)
			d.sh(`find . -mindepth 1 -delete`)
			id := "call_" + string(rune('a'+i))
			d.tool(id, c.script, c.flags...)
			artifacts := d.artifacts("--tool-use", id)
			if c.artifact {
				require.Len(t, artifacts, 1)
			} else {
				require.Empty(t, artifacts)
			}
			writes := d.writes("--tool-use", id)
			require.NotEmpty(t, writes)
			for _, w := range writes {
				require.NotEmpty(t, w.Reason, w.Path)
			}
		})
	}
}

func TestIntentAfterTheEnd(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `echo x > a.py`)
	require.Empty(t, d.artifacts())
	d.sh(`setfattr -n user.aimon.artifact -v true a.py`)
	require.Equal(t, []string{"/a.py"}, paths(d.artifacts()))
	require.Equal(t, "live", d.artifacts()[0].State)
	d.sh(`setfattr -x user.aimon.artifact a.py`)
	require.Empty(t, d.artifacts())
}

func TestArtifactsOff(t *testing.T) {
	d := startMount(t, "--artifacts", "off")
	d.tool("call_1", `echo x > a.txt; echo x > b.txt; setfattr -n user.aimon.artifact -v true b.txt`)
	require.Equal(t, []string{"/b.txt"}, paths(d.artifacts()))
	require.Len(t, d.writes(), 2)
}

func TestFactsAreReadableNotSettable(t *testing.T) {
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		d.tool("call_1", `echo x > a.txt; setfattr -n user.other -v 1 a.txt`)
		require.Equal(t, "call_1\n", d.sh(`getfattr --only-values -n user.aimon.tool_use_id a.txt; echo`))
		require.Equal(t, "exact\n", d.sh(`getfattr --only-values -n user.aimon.attribution a.txt; echo`))
		id := d.artifacts()[0].ID
		require.Equal(t, id+"\n", d.sh(`getfattr --only-values -n user.aimon.artifact_id a.txt; echo`))
		require.NotContains(t, d.sh(`getfattr -d -m - a.txt`), "tool_use_id")
		r := d.exec(nil, "setfattr", "-n", "user.aimon.tool_use_id", "-v", "forged", "a.txt")
		require.NotZero(t, r.status)
		require.Contains(t, r.stderr, "not permitted")
		d.sh(`cp -a a.txt b.txt && rsync -aX a.txt c.txt && tar --xattrs -cf - a.txt | (mkdir x && tar -C x --xattrs -xf -)`)
		require.Equal(t, "1\n", d.sh(`getfattr --only-values -n user.other x/a.txt; echo`))
	})
}
