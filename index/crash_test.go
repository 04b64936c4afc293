package index

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// crashDir names the index in the environment of the child that is killed.
const crashDir = "VFSD_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := workUntilKilled(dir); err != nil {
			fmt.Println("failed", err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// workUntilKilled begins and ends tool uses, writes entries, and prints what it has an answer to.
func workUntilKilled(dir string) error {
	ctx := context.Background()
	x, err := Open(dir, quiet())
	if err != nil {
		return err
	}
	c, err := session.New(x, quiet())
	if err != nil {
		return err
	}
	if _, err := c.OpenSession(ctx, session.Session{ID: "s1"}); err != nil {
		return err
	}
	root := session.Caller{Privileged: true}
	seq, err := x.LastSeq(ctx, "s1")
	if err != nil {
		return err
	}
	for {
		seq++
		id := fmt.Sprint("t", seq)
		u, err := c.BeginToolUse(ctx, root, session.ToolUseSpec{ID: id})
		if err != nil {
			return err
		}
		fmt.Println("begun", id)
		e := final(fmt.Sprintf("n%d", seq), seq, "/f")
		e.Who.ToolUseID, e.Who.ExecutionID = id, u.ExecutionID
		if err := x.Apply(ctx, []artifact.Mutation{{Put: &e}}); err != nil {
			return err
		}
		fmt.Println("entry", e.ID)
		if _, err := c.EndToolUse(ctx, root, "s1", id); err != nil {
			return err
		}
		fmt.Println("ended", id)
	}
}

// TestKilled: whatever was answered is there after kill -9, and the index is sound.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	answered := map[string]string{} // id to the last word about it
	for round := range 3 {
		killAfter(t, dir, 100+37*round, answered)
		x, err := Open(dir, quiet())
		require.NoError(t, err)
		for id, word := range answered {
			requireAnswered(t, x, word, id)
		}
		requireSound(t, x)
		require.NoError(t, x.Close())
	}
}

// killAfter runs the child until it printed so many lines.
func killAfter(t *testing.T, dir string, lines int, answered map[string]string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(exe)
	child.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		word, id, _ := strings.Cut(in.Text(), " ")
		require.NotEqual(t, "failed", word, id)
		answered[id] = word
		if n == lines {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())
}

func requireAnswered(t *testing.T, x *Index, word, id string) {
	t.Helper()
	ctx := context.Background()
	if word == "entry" {
		_, err := x.Entry(ctx, id)
		require.NoError(t, err)
		return
	}
	u, err := x.ToolUse(ctx, "s1", id)
	require.NoError(t, err)
	if word == "ended" {
		require.False(t, u.Open(), id)
	}
}
