package ctl

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestDefaultSocket(t *testing.T) {
	require.Equal(t, "/run/vfsd/vfsd.sock", defaultSocket(0, "/run/user/0"))
	require.Equal(t, "/run/user/7/vfsd.sock", defaultSocket(7, "/run/user/7"))
	require.Equal(t, "/run/vfsd/vfsd.sock", defaultSocket(7, ""))
	t.Setenv(EnvSocket, "/tmp/x.sock")
	require.Equal(t, "/tmp/x.sock", DefaultSocket())
	require.Equal(t, "/tmp/x.sock", new(Client).socket())
}

// answers starts a server on a socket that gives every request the same answer.
func answers(t *testing.T, h http.HandlerFunc) *Client {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return &Client{Socket: path}
}

func TestClientUnreachable(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", dead)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for _, path := range []string{filepath.Join(dir, "none"), dead} {
		_, err := (&Client{Socket: path}).Status(context.Background())
		require.ErrorIs(t, err, ErrUnreachable)
		require.Contains(t, err.Error(), path)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestClientCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := answers(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := c.Status(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrUnreachable)
}

func TestClientAnswersOfOthers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 502) },
		"redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", 301) },
		"no code":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400); w.Write([]byte("{}")) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"pid":`)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := answers(t, h).Status(context.Background())
			require.Error(t, err)
			require.Equal(t, ExitFailed, ExitStatus(err))
		})
	}
}

func TestClientRefusesIdsThatAreOtherPaths(t *testing.T) {
	c := answers(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	for _, id := range []string{"", "..", ".", "a/b", "a?b", "a%2e", strings.Repeat("x", 129)} {
		require.ErrorIs(t, c.DeleteSession(context.Background(), id), session.ErrInvalid, id)
		_, err := c.Artifact(context.Background(), id)
		require.ErrorIs(t, err, session.ErrInvalid, id)
	}
}

func TestClientListsEveryPage(t *testing.T) {
	c := answers(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "1000", r.URL.Query().Get("limit"))
		switch r.URL.Query().Get("from") {
		case "":
			w.Write([]byte(`{"items":[{"id":"a"},{"id":"b"}],"next":2}`))
		case "2":
			w.Write([]byte(`{"items":[{"id":"c"}]}`))
		}
	})
	all, err := c.Sessions(context.Background())
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, "c", all[2].ID)
}

func TestContentCutShortIsAnError(t *testing.T) {
	c := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	})
	var b strings.Builder
	require.Error(t, c.Content(context.Background(), "a1", &b))
}

func TestLinksNoneOfTheDaemon(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "aimon.at/vfsd/ctl", "aimon.at/vfsd/cmd/vfsctl").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, dep := range strings.Fields(string(out)) {
		for _, heavy := range []string{"badger", "go-fuse", "minio", "prometheus", "go-git", "mimetype", "vfsd/artifact", "vfsd/index", "vfsd/fusefs"} {
			require.NotContains(t, dep, heavy)
		}
	}
}
