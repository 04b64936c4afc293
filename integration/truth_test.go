package integration

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The environment of TestTruth: for how long it makes new writers, and the seed of a run that is to be repeated.
const (
	envSoak = "VFSD_SOAK"
	envSeed = "VFSD_TRUTH_SEED"
)

const (
	truthTime = 20 * time.Second
	atOnce    = 4  // writers
	files     = 60 // that one step of a writer makes
)

// TestTruth lets random mixes of writers write files whose names say whose they are, and compares every
// recorded write with that. No name may be wrong, and where none is given it must be a case in which
// nothing tells (see writer.loses).
func TestTruth(t *testing.T) {
	w := &world{daemon: startMount(t), kinds: map[string]writer{}, limited: limitedCgroup(t)}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(envSeed); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	long := truthTime
	if s := os.Getenv(envSoak); s != "" {
		var err error
		long, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	t.Logf("%s=%d", envSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	order := random.Perm(len(writers))
	n := 0
	end := time.Now().Add(long)
	for rounds := 0; n < len(order) || time.Now().Before(end); rounds++ {
		var picks []writer
		for range atOnce {
			pick := random.IntN(len(writers))
			if n+len(picks) < len(order) {
				pick = order[n+len(picks)] // each of them at least once
			}
			picks = append(picks, writers[pick])
		}
		n += w.round(n, random, picks)
		if single := rounds % (2 * len(alone)); single < len(alone) {
			n += w.round(n, random, alone[single:single+1])
		}
	}
	w.judge()
}

// world is a daemon and what writes below it.
type world struct {
	*daemon
	limited string            // cgroup.procs of a cgroup below which none can be made, "" where there are none
	kinds   map[string]writer // by what the names of their files begin with
}

// round runs writers at once, whose numbers begin with n, and returns when all that came of them has ended.
func (w *world) round(n int, random *rand.Rand, picks []writer) int {
	w.t.Helper()
	hold, held, err := os.Pipe()
	require.NoError(w.t, err)
	defer hold.Close()
	var all sync.WaitGroup
	for i, pick := range picks {
		grouped := w.limited == "" || random.IntN(2) == 0
		kind := fmt.Sprintf("k%d", n+i)
		w.kinds[kind] = pick
		pause := time.Duration(random.IntN(100)) * time.Millisecond
		all.Go(func() {
			<-time.After(pause)
			w.run(pick, kind, fmt.Sprintf("call_%d", n+i), grouped, held)
		})
	}
	all.Wait()
	require.NoError(w.t, held.Close())
	require.NoError(w.t, hold.SetReadDeadline(time.Now().Add(commandDeadline)))
	_, err = io.Copy(io.Discard, hold) // ends when the last process that inherited it is gone
	require.NoError(w.t, err, "a writer does not end: %v", picks)
	return len(picks)
}

func (w *world) run(of writer, kind, id string, grouped bool, held *os.File) {
	dir, err := os.MkdirTemp("", "vfsd-truth-")
	if err != nil {
		w.t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), commandDeadline)
	defer cancel()
	script := prelude + of.script
	argv := []string{"bash", "-c", script}
	env := []string{"ID=" + id, "F=" + kind + "__" + id + "__", "T=" + dir, "N=" + strconv.Itoa(files)}
	switch of.begin {
	case byRun:
		argv = append([]string{vfsctlPath, "run", "--tool-use", id, "--"}, argv...)
	case byDeclare:
		env = append(env, "VFSD_TOOL_USE_ID="+id)
	}
	if !grouped {
		argv = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, w.limited}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = w.mnt
	cmd.Env = append(append(os.Environ(), "VFSD_SOCKET="+w.socket), env...)
	cmd.ExtraFiles = []*os.File{held}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		w.t.Error(err)
		return
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && of.name != "killed" {
		said, _ := os.ReadFile(out.Name())
		w.t.Errorf("%s: %v: %s", of.name, err, said)
	}
}

// limitedCgroup makes a cgroup below which none can be made, so that vfsctl run goes by ancestry in it, and returns the
// file that takes processes into it; "" where there are no cgroups.
func limitedCgroup(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[2] != "cgroup2" {
			continue
		}
		dir, err := os.MkdirTemp(f[1], "truth-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.max.descendants"), []byte("0"), 0o644))
		return filepath.Join(dir, "cgroup.procs")
	}
	return ""
}

// judge compares what was recorded with the truth.
func (w *world) judge() {
	w.t.Helper()
	rows := w.settled()
	count := map[string]int{}
	for _, r := range rows {
		kind, id := owner(r.Path)
		of := w.kinds[kind]
		verdict := r.Attribution
		switch {
		case r.ToolUseID == id:
			verdict = "right"
		case r.ToolUseID == "" && (of.loses || strings.Contains(r.Path, "-lost")):
		case r.ToolUseID == "":
			w.t.Errorf("%s: %s is %s %v, and is %s's", of.name, r.Path, r.Attribution, r.Candidates, id)
		default:
			verdict = "wrong"
			w.t.Errorf("%s: %s is said to be %s's (%s, %s), and is %s's", of.name, r.Path, r.ToolUseID, r.Attribution, r.Source, id)
		}
		count[verdict]++
	}
	w.t.Logf("%d writes: %d right, %d wrong, %d ambiguous, %d none", len(rows), count["right"], count["wrong"], count["ambiguous"], count["none"])
	require.NotZero(w.t, count["right"])
}

// settled returns the recorded writes when every file has one.
func (w *world) settled() []row {
	w.t.Helper()
	made, err := os.ReadDir(w.source)
	require.NoError(w.t, err)
	var rows []row
	var missing []string
	complete := func() bool {
		rows, missing = w.writes(), nil
		have := map[string]bool{}
		for _, r := range rows {
			have[r.Path] = true
		}
		for _, f := range made {
			info, err := f.Info()
			require.NoError(w.t, err)
			// A file of several names is one write, under one of them.
			single := info.Sys().(*syscall.Stat_t).Nlink == 1
			if single && info.Mode().IsRegular() && !have["/"+f.Name()] {
				missing = append(missing, f.Name())
			}
		}
		return len(missing) == 0
	}
	for end := time.Now().Add(20 * time.Second); !complete() && time.Now().Before(end); {
		<-time.After(200 * time.Millisecond)
	}
	for _, name := range missing {
		kind, _ := owner(name)
		w.t.Errorf("%s: %s has no recorded write", w.kinds[kind].name, name)
	}
	return rows
}
