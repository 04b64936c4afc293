package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/ctl/server/servertest"
	"aimon.at/vfsd/session"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vfsctl": main})
}

// TestScripts runs every script of testdata against a daemon of its own that is all in memory.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               func(e *testscript.Env) error { return startDaemon(e) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fake":   fake,
			"status": status,
		},
	})
}

type fakeKey struct{}

func startDaemon(e *testscript.Env) error {
	f := servertest.New()
	f.Now = func() time.Time { return time.Now().Add(-5*time.Minute - time.Second) }
	path, stop, err := serve(f)
	if err != nil {
		return err
	}
	e.Defer(stop)
	e.Setenv("VFSD_SOCKET", path)
	e.Values[fakeKey{}] = f
	return nil
}

// serve serves f on a socket of its own until stop is called.
func serve(f *servertest.Fake) (path string, stop func(), err error) {
	// The directories of tests are too deep for a socket's address.
	dir, err := os.MkdirTemp("/tmp", "vfsctl-test-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "s")
	l, err := server.Listen(path)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg := server.Config{Version: "1.2.3", Socket: path, HTTP: "127.0.0.1:8750", PublicURL: "http://127.0.0.1:8750", StateDir: "/state"}
	srv := server.New(cfg, f.Needs(), prometheus.NewRegistry(), servertest.Logger())
	served := make(chan error)
	go func() { served <- srv.Serve(ctx, l) }()
	return path, func() {
		cancel()
		<-served
		os.RemoveAll(dir)
	}, nil
}

// fake changes what the daemon has:
//
//	fake session ID UID | mount MOUNTPOINT SESSION | artifact SESSION PATH TOOL CONTENT
//	fake problem LINE | end-fails | change ID | tool ID open|ended|none | ambiguous SESSION PATH
//
// Paths are unquoted as Go strings, so that they may hold any byte.
func fake(ts *testscript.TestScript, neg bool, args []string) {
	f := ts.Value(fakeKey{}).(*servertest.Fake)
	switch args[0] {
	case "session":
		uid, err := strconv.ParseUint(args[2], 10, 32)
		ts.Check(err)
		f.AddSession(args[1], uint32(uid))
	case "mount":
		f.AddMount(server.Mount{Mountpoint: args[1], Source: "/src", SessionID: args[2], Artifacts: true, Since: f.Now()})
	case "artifact":
		v := file(ts, args[1], args[2])
		v.MimeType = "text/plain"
		v.Who = session.Attribution{Sureness: session.Exact, Source: session.SourceCgroup, ToolUseID: args[3], ExecutionID: "e1"}
		f.AddArtifact(v, args[4])
	case "ambiguous":
		v := file(ts, args[1], args[2])
		v.Who = session.Attribution{Sureness: session.Ambiguous, Candidates: []string{"t1", "t2"}, ExecutionID: "e1", Late: true}
		f.AddArtifact(v, "")
	case "problem":
		f.Set(func(f *servertest.Fake) { f.Problems = append(f.Problems, args[1]) })
	case "end-fails":
		f.Set(func(f *servertest.Fake) { f.EndErr = errors.New("index: no space left on device") })
	case "change":
		f.Change(args[1])
	case "tool":
		toolIs(ts, f, args[1], args[2])
	default:
		ts.Fatalf("fake %s is unknown", args[0])
	}
}

func file(ts *testscript.TestScript, sessionID, quoted string) artifact.View {
	path, err := strconv.Unquote(`"` + quoted + `"`)
	ts.Check(err)
	return artifact.View{Entry: artifact.Entry{SessionID: sessionID, Names: []string{path}}}
}

func toolIs(ts *testscript.TestScript, f *servertest.Fake, id, want string) {
	got := "none"
	if t, ok := f.Tool(id); ok && t.Open() {
		got = "open"
	} else if ok {
		got = "ended"
	}
	if got != want {
		ts.Fatalf("tool use %s is %s", id, got)
	}
}

// status runs a command and requires its exit status: status 3 vfsctl …
func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var e interface{ ExitCode() int }
	if errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 😀":       "plain ü 😀",
		"a\x1b[31mb":      `a\x1b[31mb`,
		"a\nb\tc":         `a\x0ab\x09c`,
		"a\u202eb\u009bc": `a\u202eb\u009bc`,
		"a\xffb":          `a\xffb`,
		"\u2028":          `\u2028`,
	} {
		require.Equal(t, want, printable(in))
	}
}

func TestJSONLine(t *testing.T) {
	b, err := jsonLine(map[string]string{"a": "<x>\u202e\u009b\x7f\U000e0001 😀\x1b"})
	require.NoError(t, err)
	require.Equal(t, `{"a":"<x>\u202e\u009b\u007f\udb40\udc01 😀\u001b"}`, string(b))
}

func TestSizeAndSpan(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 62: "4.0 EiB"} {
		require.Equal(t, want, size(n), fmt.Sprint(n))
	}
	for d, want := range map[time.Duration]string{0: "0s", time.Minute: "1m", 47 * time.Hour: "47h", 72 * time.Hour: "3d"} {
		require.Equal(t, want, span(d))
	}
}
