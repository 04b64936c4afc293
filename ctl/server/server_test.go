package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/ctl/server/servertest"
	"aimon.at/vfsd/session"
)

var ctx = context.Background()

// daemon serves f on a socket that every user may reach, and returns its path.
func daemon(t *testing.T, f *servertest.Fake, change ...func(*server.Config)) string {
	dir, err := os.MkdirTemp("/tmp", "vfsd-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "s")
	cfg := server.Config{Version: "1.2.3", Socket: path, HTTP: "127.0.0.1:8750", PublicURL: "http://files.example", StateDir: "/state"}
	for _, c := range change {
		c(&cfg)
	}
	l, err := server.Listen(path)
	require.NoError(t, err)
	stopCtx, stop := context.WithCancel(ctx)
	served := make(chan error)
	go func() {
		served <- server.New(cfg, f.Needs(), prometheus.NewRegistry(), servertest.Logger()).Serve(stopCtx, l)
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
		require.NoFileExists(t, path)
	})
	return path
}

func artifactAt(sessionID, path, tool string) artifact.View {
	v := artifact.View{Entry: artifact.Entry{SessionID: sessionID, Names: []string{path}}}
	v.Who = session.Attribution{Sureness: session.Exact, Source: session.SourceCgroup, ToolUseID: tool, ExecutionID: "e1"}
	return v
}

func TestEveryCall(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	c := &ctl.Client{Socket: daemon(t, f)}

	e, err := c.BeginExecution(ctx, ctl.ExecutionRequest{ID: "e1", Artifacts: new(false)})
	require.NoError(t, err)
	require.Equal(t, ctl.Execution{ID: "e1", SessionID: "s1", Status: session.Running, BeganAt: f.Now()}, e)

	const odd = "toolu/../%2f?&#ü 😀\\\""
	tool, err := c.BeginToolUse(ctx, ctl.ToolUseRequest{ID: odd, ExecutionID: "e1", Self: true, Artifact: new(true)})
	require.NoError(t, err)
	require.Equal(t, odd, tool.ID)
	require.Equal(t, os.Getpid(), tool.PID)
	require.Equal(t, "/vfsd/"+odd, tool.Cgroup)
	_, err = c.BeginToolUse(ctx, ctl.ToolUseRequest{ID: odd, Self: true})
	require.ErrorIs(t, err, session.ErrConflict)
	require.Equal(t, []string{fmt.Sprintf("s1/%s/%d", odd, os.Getpid())}, f.Entered(), "refused, the caller stays where it is")

	v := f.AddArtifact(artifactAt("s1", "/out/r\xff.pdf", odd), "hello")
	as, err := c.Artifacts(ctx, ctl.ArtifactFilter{ToolUseID: odd})
	require.NoError(t, err)
	require.Equal(t, []ctl.Artifact{{
		ID: v.ID, Path: `/out/r\xff.pdf`, FileName: `r\xff.pdf`, PathEscaped: true, Size: 5, ToolUseID: odd, ExecutionID: "e1",
		SessionID: "s1", Version: 1, Attribution: session.Exact, Source: session.SourceCgroup, Final: true, State: "live", CreatedAt: f.Now(),
	}}, as)
	one, err := c.Artifact(ctx, v.ID)
	require.NoError(t, err)
	require.Equal(t, as[0], one)
	var b strings.Builder
	require.NoError(t, c.Content(ctx, v.ID, &b))
	require.Equal(t, "hello", b.String())
	vs, err := c.Versions(ctx, "", "/out/r\xff.pdf")
	require.NoError(t, err)
	require.Equal(t, as, vs)
	ws, err := c.Writes(ctx, "s1", odd)
	require.NoError(t, err)
	require.Equal(t, "default of the execution", ws[0].Reason)
	require.True(t, ws[0].Artifact)

	mark, err := c.MarkExecution(ctx, "", "e1")
	require.NoError(t, err)
	require.EqualValues(t, 1, mark.Mark)
	ended, err := c.EndToolUse(ctx, "s1", odd)
	require.NoError(t, err)
	require.NotNil(t, ended.EndedAt)
	tools, err := c.ToolUses(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []ctl.ToolUse{ended}, tools)

	added, err := c.AddArtifact(ctx, "", "/x\xfe", "")
	require.NoError(t, err)
	require.Equal(t, `/x\xfe`, added.Path)
	_, err = c.RemoveArtifact(ctx, added.ID)
	require.NoError(t, err)

	r, err := c.EndExecution(ctx, "", "e1", session.Error)
	require.NoError(t, err)
	require.Equal(t, session.Error, r.Status)
	require.Equal(t, as, r.Artifacts)
	shown, err := c.Execution(ctx, "", "e1")
	require.NoError(t, err)
	require.Equal(t, r, shown)
	_, err = c.EndExecution(ctx, "", "e1", session.Error)
	require.ErrorIs(t, err, session.ErrConflict)
	es, err := c.Executions(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []ctl.Execution{r.Execution}, es)

	require.NoError(t, c.DeleteSession(ctx, "s1"))
	ss, err := c.Sessions(ctx)
	require.NoError(t, err)
	require.Empty(t, ss)
}

func TestTokens(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	f.AddSession("s2", 0)
	v := f.AddArtifact(artifactAt("s1", "/a b?.png", "t"), "x")
	w := f.AddArtifact(artifactAt("s2", "/c", "t"), "x")
	c := &ctl.Client{Socket: daemon(t, f)}

	k, err := c.IssueToken(ctx, ctl.TokenRequest{ArtifactID: v.ID, TTLSeconds: 60, MaxDownloads: 2})
	require.NoError(t, err)
	require.Equal(t, "http://files.example/d/"+k.Token+"/a%20b%3F.png", k.URL)
	_, err = c.IssueToken(ctx, ctl.TokenRequest{ArtifactID: w.ID, TTLSeconds: 60})
	require.NoError(t, err)
	all, err := c.Tokens(ctx, "", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	of, err := c.Tokens(ctx, "", v.ID)
	require.NoError(t, err)
	require.Len(t, of, 1)
	require.Contains(t, all, of[0])
	require.NotContains(t, fmt.Sprint(all), k.Token)

	n, err := c.RevokeTokens(ctx, ctl.RevokeRequest{Token: k.Token})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = c.RevokeTokens(ctx, ctl.RevokeRequest{All: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = c.RevokeTokens(ctx, ctl.RevokeRequest{Token: "guessed"})
	require.ErrorIs(t, err, session.ErrNotFound)

	for name, r := range map[string]ctl.TokenRequest{
		"no ttl": {ArtifactID: v.ID}, "negative": {ArtifactID: v.ID, TTLSeconds: -1},
		"overflow": {ArtifactID: v.ID, TTLSeconds: 1 << 62}, "downloads": {ArtifactID: v.ID, TTLSeconds: 1, MaxDownloads: -1},
	} {
		_, err = c.IssueToken(ctx, r)
		require.ErrorIs(t, err, session.ErrInvalid, name)
	}
	for _, r := range []ctl.RevokeRequest{{}, {All: true, Token: "x"}, {ArtifactID: "x", Token: "x"}} {
		_, err = c.RevokeTokens(ctx, r)
		require.ErrorIs(t, err, session.ErrInvalid)
	}
}

func TestNoLinksWithoutAGateway(t *testing.T) {
	f := servertest.New()
	c := &ctl.Client{Socket: daemon(t, f, func(c *server.Config) { c.PublicURL = "" })}
	_, err := c.IssueToken(ctx, ctl.TokenRequest{ArtifactID: "a", TTLSeconds: 1})
	require.ErrorIs(t, err, session.ErrConflict)
}

func TestStatusAndMounts(t *testing.T) {
	f := servertest.New()
	f.AddMount(server.Mount{Mountpoint: "/mnt/a", SessionID: "a", Owner: 7, Pending: 3, Since: f.Now()})
	f.Problems = []string{"artifact a1 has no row"}
	path := daemon(t, f)
	c := &ctl.Client{Socket: path}
	m, err := c.Mount(ctx, ctl.MountRequest{Source: "/src", Mountpoint: "/mnt/b/", Owner: new(uint32(7)), CacheTimeoutMillis: new(int64(5))})
	require.NoError(t, err)
	require.Equal(t, "/mnt/b", m.Mountpoint)
	_, err = c.Mount(ctx, ctl.MountRequest{Source: "/src", Mountpoint: "/mnt/b"})
	require.ErrorIs(t, err, session.ErrConflict)
	_, err = c.Mount(ctx, ctl.MountRequest{Source: "/src", Mountpoint: "rel"})
	require.ErrorIs(t, err, session.ErrInvalid)

	s, err := c.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"1.2.3", path, "127.0.0.1:8750", "/state"}, []string{s.Version, s.Socket, s.HTTP, s.StateDir})
	require.Equal(t, os.Getpid(), s.PID)
	require.Equal(t, 3, s.RecordingLag)
	require.Len(t, s.Mounts, 2)

	u, err := c.Unmount(ctx, "/mnt/a")
	require.NoError(t, err)
	require.Equal(t, ctl.Unmounted{Mountpoint: "/mnt/a"}, u)
	_, err = c.Unmount(ctx, "/mnt/a")
	require.ErrorIs(t, err, session.ErrNotFound)
	p, err := c.Check(ctx)
	require.NoError(t, err)
	require.Equal(t, ctl.Problems{Problems: []ctl.Problem{{Message: "artifact a1 has no row"}}}, p)
}

func TestPages(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	for i := range 2500 {
		f.AddArtifact(artifactAt("s1", fmt.Sprintf("/f%d", i), "t"), "")
	}
	for i := range 1001 {
		f.AddSession(fmt.Sprintf("x%d", i), 0)
	}
	c := &ctl.Client{Socket: daemon(t, f)}
	as, err := c.Artifacts(ctx, ctl.ArtifactFilter{SessionID: "s1"})
	require.NoError(t, err)
	require.Len(t, as, 2500)
	require.Equal(t, "/f2499", as[2499].Path)
	as, err = c.Artifacts(ctx, ctl.ArtifactFilter{SessionID: "s1", From: 2400})
	require.NoError(t, err)
	require.Len(t, as, 100)
	ss, err := c.Sessions(ctx)
	require.NoError(t, err)
	require.Len(t, ss, 1002)
	require.Equal(t, "x1000", ss[1001].ID)
}

func TestContentThatChanged(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	v := f.AddArtifact(artifactAt("s1", "/a", "t"), "x")
	empty := f.AddArtifact(artifactAt("s1", "/empty", "t"), "")
	c := &ctl.Client{Socket: daemon(t, f)}
	var b strings.Builder
	require.NoError(t, c.Content(ctx, empty.ID, &b))
	f.Change(v.ID)
	require.ErrorIs(t, c.Content(ctx, v.ID, &b), ctl.ErrGone)
	require.Empty(t, b.String())
}

// raw sends a request as no client of ours would.
func raw(t *testing.T, path, method, url, body string) (int, string) {
	hc := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	defer hc.CloseIdleConnections()
	req, err := http.NewRequest(method, "http://vfsd"+url, strings.NewReader(body))
	require.NoError(t, err)
	res, err := hc.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var b strings.Builder
	_, err = fmt.Fprint(&b, readAll(t, res))
	require.NoError(t, err)
	return res.StatusCode, b.String()
}

func TestBadRequests(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	path := daemon(t, f)
	for _, row := range []struct {
		name, method, url, body string
		status                  int
	}{
		{"no JSON", "POST", "/v1/executions", "{", 400},
		{"unknown field", "POST", "/v1/executions", `{"sesionId":"s1"}`, 400},
		{"two values", "POST", "/v1/executions", `{}{}`, 400},
		{"null", "POST", "/v1/executions", `null`, 400},
		{"no object", "POST", "/v1/executions", `[]`, 400},
		{"wrong type", "POST", "/v1/executions", `{"id":7}`, 400},
		{"no body", "POST", "/v1/executions", ``, 400},
		{"too large", "POST", "/v1/tool-uses", `{"id":"` + strings.Repeat("x", 1<<20) + `"}`, 400},
		{"tool-use id", "POST", "/v1/tool-uses", `{"id":"a\u0000b"}`, 400},
		{"two processes", "POST", "/v1/tool-uses", `{"id":"a","self":true,"pid":1}`, 400},
		{"process that is not", "POST", "/v1/tool-uses", `{"id":"a","pid":2147483647}`, 404},
		{"status that is none", "POST", "/v1/executions/e/end", `{"status":"RUNNING"}`, 400},
		{"unknown parameter", "GET", "/v1/sessions?sesion=x", "", 400},
		{"parameter twice", "GET", "/v1/artifacts?session=s1&session=s2", "", 400},
		{"no number", "GET", "/v1/artifacts?from=-1", "", 400},
		{"no flag", "GET", "/v1/artifacts?all=perhaps", "", 400},
		{"bad escape", "GET", `/v1/versions?path=%5Cq&pathEscaped=true`, "", 400},
		{"no such route", "GET", "/v1/nothing", "", 404},
		{"no such method", "PUT", "/v1/sessions", "", 404},
		{"far page", "GET", "/v1/sessions?from=99999999999", "", 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, body := raw(t, path, row.method, row.url, row.body)
			require.Equal(t, row.status, status, body)
			if status != 200 {
				require.Regexp(t, `^\{"error":\{"code":"(usage|notFound)","message":".+"\}\}\n$`, body)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	f := servertest.New()
	f.AddSession("secret-session", 0)
	f.AddMount(server.Mount{Mountpoint: "/secret/mount", Pending: 4})
	path := daemon(t, f)
	raw(t, path, "GET", "/v1/sessions/secret-session", "")
	raw(t, path, "GET", "/v1/sessions/other", "")
	raw(t, path, "GET", "/v1/secret", "")
	status, body := raw(t, path, "GET", "/metrics", "")
	require.Equal(t, 200, status)
	for _, want := range []string{
		`vfsd_control_requests_total{code="200",route="GET /v1/sessions/{id}"} 1`,
		`vfsd_control_requests_total{code="404",route="GET /v1/sessions/{id}"} 1`,
		`vfsd_control_requests_total{code="404",route="/"} 1`,
		"vfsd_mounts 1", "vfsd_recording_lag_events 4",
	} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "secret")
}

func TestTokenPagesOverSessions(t *testing.T) {
	f := servertest.New()
	f.AddSession("s1", 0)
	f.AddSession("s2", 0)
	first := f.AddArtifact(artifactAt("s1", "/a", "t"), "x")
	second := f.AddArtifact(artifactAt("s2", "/b", "t"), "x")
	path := daemon(t, f)
	c := &ctl.Client{Socket: path}
	minute := 0
	issue := func(id string) {
		minute++
		at := time.Date(2026, 5, 4, 10, minute, 0, 0, time.UTC)
		f.Set(func(f *servertest.Fake) { f.Now = func() time.Time { return at } })
		_, err := c.IssueToken(ctx, ctl.TokenRequest{ArtifactID: id, TTLSeconds: 3600})
		require.NoError(t, err)
	}
	page := func(from uint64) (p ctl.Page[ctl.Token]) {
		_, body := raw(t, path, "GET", fmt.Sprintf("/v1/tokens?limit=1&from=%d", from), "")
		require.NoError(t, json.Unmarshal([]byte(body), &p))
		return p
	}
	issue(second.ID)
	issue(second.ID)
	p := page(0)
	seen := p.Items
	issue(first.ID) // in the session that is listed first
	for p.Next != 0 {
		p = page(p.Next)
		seen = append(seen, p.Items...)
	}
	all, err := c.Tokens(ctx, "", "")
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, all, seen)
}
