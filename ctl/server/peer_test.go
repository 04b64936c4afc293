package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/ctl/server/servertest"
	"aimon.at/vfsd/session"
)

func readAll(t *testing.T, res *http.Response) string {
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

// The peer tests call a daemon from another process of another user: this test binary, run again with
// envPeer set, carries out what peerCalls says and reports the outcomes.
const envPeer = "VFSD_TEST_PEER_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(envPeer); path != "" {
		_ = json.NewEncoder(os.Stdout).Encode(peerCalls(&ctl.Client{Socket: path}))
		return
	}
	os.Exit(m.Run())
}

// peerCalls walks over every verb and returns the exit status that each would have.
func peerCalls(c *ctl.Client) map[string]int {
	out := map[string]int{}
	note := func(name string, err error) {
		out[name] = ctl.ExitStatus(err)
		var e *ctl.Error
		if err != nil && !errors.As(err, &e) {
			out[name] = -1
		}
	}
	st, err := c.Status(ctx)
	note("status", err)
	out["mounts seen"], out["sessions seen"] = len(st.Mounts), st.Sessions
	ss, err := c.Sessions(ctx)
	note("sessions", err)
	out["sessions listed"] = len(ss)
	ts, err := c.Tokens(ctx, "", "")
	note("tokens", err)
	out["tokens listed"] = len(ts)
	_, err = c.Mount(ctx, ctl.MountRequest{Source: "/a", Mountpoint: "/b"})
	note("mount", err)
	_, err = c.Unmount(ctx, "/mnt/root")
	note("unmount", err)
	_, err = c.Check(ctx)
	note("check", err)
	_, err = c.Executions(ctx, "rooted")
	note("executions", err)
	_, err = c.BeginExecution(ctx, ctl.ExecutionRequest{SessionID: "rooted"})
	note("begin execution", err)
	_, err = c.Execution(ctx, "", "e-root")
	note("show execution", err)
	_, err = c.MarkExecution(ctx, "rooted", "e-root")
	note("mark", err)
	_, err = c.EndExecution(ctx, "rooted", "e-root", session.Completed)
	note("end execution", err)
	_, err = c.BeginToolUse(ctx, ctl.ToolUseRequest{SessionID: "rooted", ID: "t", Self: true})
	note("begin tool use", err)
	_, err = c.BeginToolUse(ctx, ctl.ToolUseRequest{SessionID: "theirs", ID: "t-root-pid", PID: os.Getppid()})
	note("tool use of root's process", err)
	_, err = c.EndToolUse(ctx, "rooted", "t")
	note("end tool use", err)
	_, err = c.ToolUses(ctx, "rooted")
	note("tool uses", err)
	_, err = c.Artifacts(ctx, ctl.ArtifactFilter{SessionID: "rooted"})
	note("artifacts", err)
	_, err = c.Artifacts(ctx, ctl.ArtifactFilter{ExecutionID: "e-root"})
	note("artifacts of an execution", err)
	_, err = c.Artifact(ctx, "A-ROOT")
	note("artifact", err)
	note("content", c.Content(ctx, "A-ROOT", io.Discard))
	_, err = c.AddArtifact(ctx, "rooted", "/x", "")
	note("add", err)
	_, err = c.RemoveArtifact(ctx, "A-ROOT")
	note("remove", err)
	_, err = c.Versions(ctx, "rooted", "/x")
	note("versions", err)
	_, err = c.Writes(ctx, "rooted", "")
	note("writes", err)
	_, err = c.IssueToken(ctx, ctl.TokenRequest{ArtifactID: "A-ROOT", TTLSeconds: 1})
	note("issue", err)
	_, err = c.RevokeTokens(ctx, ctl.RevokeRequest{ArtifactID: "A-ROOT"})
	note("revoke", err)
	_, err = c.RevokeTokens(ctx, ctl.RevokeRequest{Token: "secret-1"})
	note("revoke by secret", err)
	note("delete session", c.DeleteSession(ctx, "rooted"))
	_, err = c.Artifact(ctx, "A-THEIRS")
	note("own artifact", err)
	return out
}

// callAs runs peerCalls in a process of its own.
func callAs(t *testing.T, path string, attr *syscall.SysProcAttr) map[string]int {
	// The binary lies where only this user may go: it is run by its descriptor's name.
	exe, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer exe.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = []string{envPeer + "=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	b, err := cmd.Output()
	require.NoError(t, err, string(b))
	var out map[string]int
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

const nobody = 65534

func peopled(t *testing.T) *servertest.Fake {
	require.Zero(t, os.Getuid(), "these tests change their user and need root")
	f := servertest.New()
	f.AddSession("rooted", 0)
	f.AddSession("theirs", nobody)
	f.AddMount(server.Mount{Mountpoint: "/mnt/root", SessionID: "rooted"})
	f.AddMount(server.Mount{Mountpoint: "/mnt/theirs", SessionID: "theirs", Owner: nobody})
	v := artifactAt("rooted", "/x", "t")
	v.ID = "A-ROOT"
	f.AddArtifact(v, "root's")
	v = artifactAt("theirs", "/x", "t")
	v.ID = "A-THEIRS"
	f.AddArtifact(v, "theirs")
	root := session.Caller{Privileged: true}
	_, err := f.BeginExecution(ctx, root, session.ExecutionSpec{SessionID: "rooted", ID: "e-root"})
	require.NoError(t, err)
	_, _, err = f.Needs().Tokens.Issue(ctx, "A-ROOT", 1e9, 0)
	require.NoError(t, err)
	return f
}

func TestAStrangerFindsNothing(t *testing.T) {
	f := peopled(t)
	got := callAs(t, daemon(t, f), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
	for name, want := range map[string]int{
		"status": 0, "mounts seen": 1, "sessions seen": 1, "sessions": 0, "sessions listed": 1, "tokens": 0, "tokens listed": 0,
		"mount": ctl.ExitNotAllowed, "unmount": ctl.ExitNotAllowed, "check": ctl.ExitNotAllowed, "own artifact": 0,
	} {
		require.Equal(t, want, got[name], name)
		delete(got, name)
	}
	require.Len(t, got, 21)
	for name, status := range got {
		require.Equal(t, ctl.ExitNotFound, status, name)
	}
	require.Empty(t, f.Entered(), "no cgroup for a session that is not theirs")
}

func TestRootMayDoEverything(t *testing.T) {
	got := callAs(t, daemon(t, peopled(t)), &syscall.SysProcAttr{})
	for name, status := range got {
		switch name {
		case "mounts seen", "sessions seen", "sessions listed":
			require.Equal(t, 2, status, name)
		case "tokens listed":
			require.Equal(t, 1, status, name)
		default:
			require.Zero(t, status, name)
		}
	}
}

func TestForeignPIDNamespace(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		for _, uid := range []uint32{0, nobody} {
			t.Run(fmt.Sprintf("allowed %t uid %d", allowed, uid), func(t *testing.T) {
				path := daemon(t, peopled(t), func(c *server.Config) { c.AllowForeignPIDNamespace = allowed })
				got := callAs(t, path, &syscall.SysProcAttr{
					Cloneflags: syscall.CLONE_NEWPID, Credential: &syscall.Credential{Uid: uid, Gid: uid},
				})
				want := ctl.ExitNotAllowed
				if allowed {
					want = 0
				}
				require.Equal(t, want, got["status"])
				require.Equal(t, want, got["sessions"])
			})
		}
	}
}

func TestInternalFailuresAreToldToRootOnly(t *testing.T) {
	f := peopled(t)
	f.ListErr = errors.New("reading /state/index: input/output error")
	c := &ctl.Client{Socket: daemon(t, f)}
	_, err := c.Artifacts(ctx, ctl.ArtifactFilter{SessionID: "rooted"})
	require.ErrorContains(t, err, "/state/index")
	require.Equal(t, ctl.ExitFailed, ctl.ExitStatus(err))
}
