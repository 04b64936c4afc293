package integration

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crash is what callers were told over the lives of a daemon that is killed again and again.
type crash struct {
	*daemon
	answered chan struct{} // one for each thing that worked

	mu     sync.Mutex          // guards all below
	tried  map[string][]string // paths that a tool use may have written
	begun  map[string]bool     // its begin was answered
	asked  map[string]bool     // its end was asked for
	ended  map[string]bool     // its end was answered
	tokens map[string]string   // content by token
}

// TestKilledUnderLoad: whatever was answered is true after kill -9, and nothing else is.
func TestKilledUnderLoad(t *testing.T) {
	lasts := 25 * time.Second
	if s := os.Getenv("VFSD_SOAK"); s != "" {
		var err error
		lasts, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := &crash{daemon: startMount(t), tried: map[string][]string{}, begun: map[string]bool{},
		asked: map[string]bool{}, ended: map[string]bool{}, tokens: map[string]string{}}
	rounds := 0
	for until := time.Now().Add(lasts); time.Now().Before(until); rounds++ {
		c.round(rounds, 1+random.IntN(25), time.Duration(random.IntN(50))*time.Millisecond)
	}
	t.Logf("%d rounds, %d tool uses, %d ended, %d links", rounds, len(c.tried), len(c.ended), len(c.tokens))
	require.NotEmpty(t, c.ended, "the daemon never lived long enough to say anything")
}

// round lets tool uses run, kills the daemon some time after so many answers and looks at what the next
// one knows.
func (c *crash) round(n, answers int, later time.Duration) {
	c.answered = make(chan struct{}, 1000)
	var tools sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		tools.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					c.toolUse(fmt.Sprintf("r%d-w%d-%d", n, w, i), i%5 == 4)
				}
			}
		})
	}
	for range answers {
		select {
		case <-c.answered:
		case <-time.After(commandDeadline):
			c.t.Fatal("the daemon answers nobody")
		}
	}
	time.Sleep(later) // somewhere in the next request
	close(stop)
	c.kill()
	tools.Wait()
	c.start()
	c.verify()
}

// toolUse writes three files, one of them by way of a temporary name, and one that it removes.
func (c *crash) toolUse(id string, leftOpen bool) {
	c.note(func() {
		c.tried[id] = []string{"/" + id + "/a.csv", "/" + id + "/b.csv", "/" + id + "/c.csv", "/" + id + "/c.tmp", "/" + id + "/gone.csv"}
	})
	if _, ok := c.ask(vfsctlPath, "tool", "begin", id); !ok {
		return
	}
	c.note(func() { c.begun[id] = true })
	_, wrote := c.ask("sh", "-ec", fmt.Sprintf(`cd %s; mkdir %[2]s; cd %[2]s; export VFSD_TOOL_USE_ID=%[2]s
		sh -ec 'echo %[2]s > a.csv; echo 2 > b.csv; echo 3 > c.tmp; mv c.tmp c.csv; echo 4 > gone.csv; rm gone.csv'`, c.mnt, id))
	if !wrote || leftOpen {
		return
	}
	c.note(func() { c.asked[id] = true })
	if _, ok := c.ask(vfsctlPath, "tool", "end", id); !ok {
		return
	}
	c.note(func() { c.ended[id] = true })
	rows, ok := c.ask(vfsctlPath, "artifacts", "list", "--tool-use", id, "--json")
	if !ok {
		return
	}
	for _, r := range decode[[]row](c.t, rows) {
		if url, ok := c.ask(vfsctlPath, "artifacts", "token", r.ID); ok && strings.HasSuffix(r.Path, "/a.csv") {
			_, token, _ := strings.Cut(strings.TrimSpace(url), "/d/")
			token, _, _ = strings.Cut(token, "/")
			c.note(func() { c.tokens[token] = id + "\n" })
		}
	}
}

func (c *crash) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// ask runs a command that may fail, because the daemon does not live.
func (c *crash) ask(name string, args ...string) (stdout string, ok bool) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.source, append(os.Environ(), "VFSD_SOCKET="+c.socket), 5*time.Second
	out, err := cmd.Output()
	if err == nil {
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return string(out), err == nil
}

func (c *crash) verify() {
	t := c.t
	of := map[string][]string{}
	for _, r := range c.writes() {
		require.Contains(t, c.tried[r.ToolUseID], r.Path, "invented")
		if c.ended[r.ToolUseID] {
			require.True(t, r.Final, r.Path)
			of[r.ToolUseID] = append(of[r.ToolUseID], r.Path)
		}
	}
	for id := range c.ended {
		require.ElementsMatch(t, []string{"/" + id + "/a.csv", "/" + id + "/b.csv", "/" + id + "/c.csv"}, of[id])
	}
	open := c.ctl("tool", "list")
	for id := range c.begun {
		if !c.asked[id] {
			require.Contains(t, open, id)
			c.ctl("tool", "end", id) // so that the next round has it among those that ended
			c.asked[id] = true
		}
	}
	for token, content := range c.tokens {
		answer, err := http.Get(c.http + "/d/" + token)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, string(body))
		require.Equal(t, content, string(body))
	}
	c.ctl("check")
}
