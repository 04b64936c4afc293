package fusefs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Mounts are served by another process: the test binary itself, told so by its environment. A
// process that uses its own mount can wait for itself.
const daemonEnv = "VFSD_FUSEFS_TEST_DAEMON"

// patience bounds everything that a test waits for.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if spec := os.Getenv(daemonEnv); spec != "" {
		os.Exit(daemon(spec))
	}
	os.Exit(m.Run())
}

// spec is what a daemon is asked to serve.
type spec struct {
	Source string
	Config Config
	Track  bool
	FDs    uint64 // the daemon's limit of descriptors; 0 for what it has
	Facts  map[string]string
}

// message is a line from the daemon.
type message struct {
	Ready       bool
	Error       string
	Kind        string // of the error: invalid, conflict
	Passthrough bool
	Event       *change.Event
	Paths       [2][]byte // the event's Path and From: JSON strings do not hold any byte
	Reply       *reply
}

// reply answers a command.
type reply struct {
	Detached bool
	Error    string
	Nodes    int
	FDs      int
	Heap     uint64
	Served   map[uint32]uint64
}

type teller struct {
	mu    sync.Mutex
	out   *json.Encoder
	facts map[string]string
}

func (t *teller) say(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Encode(m)
}

func (t *teller) Record(e change.Event) {
	t.say(message{Event: &e, Paths: [2][]byte{[]byte(e.Path), []byte(e.From)}})
}

func (t *teller) Fact(_ change.FileID, name string) (string, bool) {
	v, ok := t.facts[name]
	return v, ok
}

// Attribute takes the caller's word for it: its environment.
func (t *teller) Attribute(_ context.Context, c Caller) session.Attribution {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.PID))
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if id, ok := bytes.CutPrefix(v, []byte("TOOL=")); ok {
			if string(id) == "panic" {
				panic("as asked")
			}
			return session.Attribution{Sureness: session.Declared, ToolUseID: string(id), ExecutionID: "e"}
		}
	}
	return session.Attribution{Sureness: session.None, ExecutionID: "e"}
}

func daemon(text string) int {
	var s spec
	t := &teller{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.say(message{Error: err.Error()})
		return 1
	}
	t.facts = s.Facts
	if s.FDs > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: s.FDs, Max: s.FDs}); err != nil {
			t.say(message{Error: err.Error()})
			return 1
		}
	}
	tree, err := worktree.Open(s.Source)
	if err != nil {
		t.say(message{Error: err.Error()})
		return 1
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var m *Mount
	if s.Track {
		m, err = New(s.Config, tree, t, t, log)
	} else {
		m, err = New(s.Config, tree, nil, nil, log)
	}
	if err != nil {
		t.say(message{Error: err.Error()})
		return 1
	}
	t.say(message{Ready: true, Passthrough: m.Passthrough()})
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		t.say(message{Reply: obey(m, strings.Fields(commands.Text()))})
	}
	m.Unmount(context.Background())
	return 0
}

func obey(m *Mount, words []string) *reply {
	r := &reply{}
	switch words[0] {
	case "unmount":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		detached, err := m.Unmount(ctx)
		r.Detached = detached
		if err != nil {
			r.Error = err.Error()
		}
	case "settle":
		wait, _ := time.ParseDuration(words[1])
		id := ""
		if len(words) > 2 {
			id = words[2]
		}
		m.Settle(context.Background(), id, wait)
	case "stats":
		m.fs.table.mu.Lock()
		r.Nodes = len(m.fs.table.byID)
		m.fs.table.mu.Unlock()
		fds, _ := os.ReadDir("/proc/self/fd")
		r.FDs = len(fds)
		r.Served = m.fs.conn.Served()
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		r.Heap = ms.HeapAlloc
	}
	return r
}

// mounted is a mount served by another process.
type mounted struct {
	t        *testing.T
	source   string
	dir      string
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	messages chan message
	log      *logBuffer
	ready    message
	bugs     bool // complaints of the daemon are expected
}

// logBuffer is what the daemon logs: written while the test reads it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// mode is how the data of a mount is served.
type mode struct {
	name  string
	plain bool
}

// modes are what every test runs in.
func modes() []mode {
	if os.Geteuid() != 0 {
		return []mode{{"plain", true}}
	}
	return []mode{{"passthrough", false}, {"plain", true}}
}

// inModes runs test on a fresh mount of each mode.
func inModes(t *testing.T, change func(*spec), test func(t *testing.T, m *mounted)) {
	for _, mode := range modes() {
		t.Run(mode.name, func(t *testing.T) {
			s := spec{Source: filepath.Join(scratch(t), "source")}
			require.NoError(t, os.Mkdir(s.Source, 0o755))
			s.Config = Config{NoPassthrough: mode.plain, CacheTimeout: time.Second, AllowOther: os.Geteuid() == 0}
			if change != nil {
				change(&s)
			}
			m := serve(t, s)
			require.Equal(t, !mode.plain, m.ready.Passthrough, "log: %s", m.log)
			test(t, m)
		})
	}
}

// scratch is a directory that everybody may enter: t.TempDir is for its owner alone.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("", "vfsd-fusefs-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func serve(t *testing.T, s spec) *mounted {
	m := start(t, s)
	require.Empty(t, m.ready.Error, "log: %s", m.log)
	return m
}

// start starts a daemon and waits until it is ready or failed.
func start(t *testing.T, s spec) *mounted {
	t.Helper()
	if s.Config.Mountpoint == "" {
		s.Config.Mountpoint = filepath.Join(filepath.Dir(s.Source), "mnt")
		require.NoError(t, os.MkdirAll(s.Config.Mountpoint, 0o755))
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	m := &mounted{t: t, source: s.Source, dir: s.Config.Mountpoint, messages: make(chan message, 1<<16), log: &logBuffer{}}
	m.cmd = exec.Command("/proc/self/exe")
	// A program with the race detector sleeps for a second at its end otherwise.
	m.cmd.Env = append(os.Environ(), daemonEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	m.cmd.Stderr = m.log
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := m.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, m.cmd.Start())
	go m.listen(out)
	t.Cleanup(m.stop)
	m.ready = m.next()
	return m
}

func (m *mounted) listen(out io.Reader) {
	defer close(m.messages)
	lines := json.NewDecoder(out)
	for {
		var got message
		if lines.Decode(&got) != nil {
			return
		}
		if got.Event != nil {
			got.Event.Path, got.Event.From = string(got.Paths[0]), string(got.Paths[1])
		}
		m.messages <- got
	}
}

func (m *mounted) next() message {
	m.t.Helper()
	select {
	case got, ok := <-m.messages:
		if !ok {
			m.t.Fatalf("the daemon is gone; its log: %s", m.log)
		}
		return got
	case <-time.After(patience):
		m.t.Fatalf("the daemon does not answer; its log: %s", m.log)
	}
	panic("not reached")
}

// command sends a command and returns the reply; events before it are returned too.
func (m *mounted) command(text string) (*reply, []change.Event) {
	m.t.Helper()
	_, err := io.WriteString(m.stdin, text+"\n")
	require.NoError(m.t, err)
	var events []change.Event
	for {
		got := m.next()
		if got.Reply != nil {
			return got.Reply, events
		}
		if got.Event != nil {
			events = append(events, *got.Event)
		}
	}
}

// stop ends the daemon, by force where it does not go, and leaves no mount.
func (m *mounted) stop() {
	m.stdin.Close()
	done := make(chan struct{})
	go func() {
		for range m.messages {
		}
		m.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		m.t.Errorf("the daemon does not end; its log: %s", m.log)
		m.abort()
		m.cmd.Process.Kill()
		<-done
	}
	if _, still, _ := mountedAt(m.dir); still {
		detach(m.dir)
	}
	if strings.Contains(m.log.String(), "DATA RACE") {
		m.t.Errorf("the daemon has a data race: %s", m.log)
	}
	if !m.bugs && strings.Contains(m.log.String(), "level=ERROR") {
		m.t.Errorf("the daemon complained: %s", m.log)
	}
}

// abort cuts the connection, which wakes everybody who waits for it.
func (m *mounted) abort() {
	if e, ok, _ := mountedAt(m.dir); ok {
		_, minor, _ := strings.Cut(e.device, ":")
		os.WriteFile("/sys/fs/fuse/connections/"+minor+"/abort", []byte("1"), 0)
	}
}

func (m *mounted) path(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}
func (m *mounted) below(elem ...string) string {
	return filepath.Join(append([]string{m.source}, elem...)...)
}
