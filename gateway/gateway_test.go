package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl/server/servertest"
	"aimon.at/vfsd/gateway"
)

var ctx = context.Background()

// site is a gateway over a fake daemon, with what it logged.
type site struct {
	*servertest.Fake
	url string
	log *bytes.Buffer
}

func newSite(t *testing.T, change ...func(*servertest.Fake) (gateway.Redeemer, gateway.Opener)) *site {
	s := &site{Fake: servertest.New(), log: &bytes.Buffer{}}
	var tokens gateway.Redeemer = s.Redeemer()
	var files gateway.Opener = s.Library()
	for _, c := range change {
		tokens, files = c(s.Fake)
	}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.url = "http://" + l.Addr().String()
	stopCtx, stop := context.WithCancel(ctx)
	served := make(chan error)
	go func() { served <- gateway.New(tokens, files, prometheus.NewRegistry(), log).Serve(stopCtx, l) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.NoError(t, <-served)
		require.NotContains(t, s.log.String(), "secret-", "a token was logged")
	})
	return s
}

// file adds an artifact and a token for it.
func (s *site) file(t *testing.T, path, mime, content string, maxDownloads int) (v artifact.View, secret string) {
	v = artifact.View{Entry: artifact.Entry{SessionID: "s1", Names: []string{path}, MimeType: mime}}
	v = s.AddArtifact(v, content)
	secret, _, err := s.Needs().Tokens.Issue(ctx, v.ID, time.Hour, maxDownloads)
	require.NoError(t, err)
	return v, secret
}

func (s *site) do(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	req, err := http.NewRequest(method, s.url+path, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(b)
}

// guardedBy requires the headers that every answer has.
func guardedBy(t *testing.T, h http.Header) {
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	require.Equal(t, "private, no-store", h.Get("Cache-Control"))
	require.Contains(t, h.Get("Content-Security-Policy"), "sandbox")
	require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
}

func TestDownload(t *testing.T) {
	s := newSite(t)
	_, k := s.file(t, "/out/report.txt", "text/plain", "0123456789", 0)
	for _, path := range []string{"/d/" + k, "/d/" + k + "/report.txt", "/d/" + k + "/any%2Fname"} {
		res, body := s.do(t, "GET", path)
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, "0123456789", body)
		require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"))
		require.Equal(t, `attachment; filename="report.txt"; filename*=UTF-8''report.txt`, res.Header.Get("Content-Disposition"))
		require.Equal(t, "bytes", res.Header.Get("Accept-Ranges"))
		require.Regexp(t, `^"[0-9a-f]{32}"$`, res.Header.Get("ETag"))
		guardedBy(t, res.Header)
	}
	res, body := s.do(t, "HEAD", "/d/"+k)
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "10", res.Header.Get("Content-Length"))
	require.Empty(t, body)

	etag := res.Header.Get("ETag")
	res, body = s.do(t, "GET", "/d/"+k, "Range", "bytes=3-5")
	require.Equal(t, 206, res.StatusCode)
	require.Equal(t, "345", body)
	require.Equal(t, "bytes 3-5/10", res.Header.Get("Content-Range"))
	res, _ = s.do(t, "GET", "/d/"+k, "Range", "bytes=3-5", "If-Range", `"other"`)
	require.Equal(t, 200, res.StatusCode)
	res, _ = s.do(t, "GET", "/d/"+k, "Range", "bytes=3-5", "If-Range", etag)
	require.Equal(t, 206, res.StatusCode)
	res, _ = s.do(t, "GET", "/d/"+k, "Range", "bytes=10-")
	require.Equal(t, 416, res.StatusCode)
	res, body = s.do(t, "GET", "/d/"+k, "Range", "bytes=0-1,3-4")
	require.Equal(t, 200, res.StatusCode)
	require.Len(t, body, 10)
	res, _ = s.do(t, "GET", "/d/"+k, "If-None-Match", etag)
	require.Equal(t, 304, res.StatusCode)
}

func TestRefusals(t *testing.T) {
	s := newSite(t)
	_, expired := s.file(t, "/a", "", "x", 0)
	at := s.Now()
	s.Now = func() time.Time { return at.Add(time.Hour) }
	_, revoked := s.file(t, "/b", "", "x", 0)
	_, err := s.Needs().Tokens.Revoke(ctx, revoked)
	require.NoError(t, err)
	_, used := s.file(t, "/c", "", "x", 1)
	changed, replaced := s.file(t, "/d", "", "x", 0)
	s.Change(changed.ID)
	limited, replacedLimited := s.file(t, "/e", "", "x", 1)
	s.Change(limited.ID)
	gone := artifact.View{State: artifact.Deleted}
	gone.Names = []string{"/g"}
	gone = s.AddArtifact(gone, "x")
	deleted, _, err := s.Needs().Tokens.Issue(ctx, gone.ID, time.Hour, 0)
	require.NoError(t, err)
	_, body := s.do(t, "GET", "/d/"+used)
	require.Equal(t, "x", body)

	for _, row := range []struct {
		name, secret string
		status       int
		body         string
	}{
		{"guessed", "secret-99", 404, "not found\n"},
		{"expired", expired, 410, "gone: expired\n"},
		{"revoked", revoked, 410, "gone: revoked\n"},
		{"used up", used, 410, "gone: used up\n"},
		{"replaced", replaced, 410, "gone: replaced\n"},
		{"replaced, limited", replacedLimited, 410, "gone: replaced\n"},
		{"deleted", deleted, 410, "gone: deleted\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			res, body := s.do(t, "GET", "/d/"+row.secret)
			require.Equal(t, row.status, res.StatusCode)
			require.Equal(t, row.body, body)
			require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"))
			require.Empty(t, res.Header.Get("Content-Disposition"))
			require.Empty(t, res.Header.Get("ETag"))
			guardedBy(t, res.Header)
			res, _ = s.do(t, "HEAD", "/d/"+row.secret)
			require.Equal(t, row.status, res.StatusCode)
		})
	}
}

func TestRoutes(t *testing.T) {
	s := newSite(t)
	_, k := s.file(t, "/a", "", "x", 0)
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200}, {"HEAD", "/healthz", 200}, {"GET", "/", 404}, {"GET", "/d", 404}, {"GET", "/d/", 404},
		{"GET", "/d/" + k + "/a/b", 404}, {"GET", "/v1/status", 404}, {"POST", "/d/" + k, 405}, {"DELETE", "/d/" + k, 405},
		{"PUT", "/", 405}, {"OPTIONS", "/d/" + k, 405}, {"TRACE", "/d/" + k, 405},
	} {
		res, _ := s.do(t, row.method, row.path)
		require.Equal(t, row.status, res.StatusCode, "%s %s", row.method, row.path)
		guardedBy(t, res.Header)
		if row.status == 405 {
			require.Equal(t, "GET, HEAD", res.Header.Get("Allow"))
		}
	}
	req, err := http.NewRequest("GET", s.url+"/d/"+k, strings.NewReader("body"))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, 400, res.StatusCode)
}

func TestLimitedDownloads(t *testing.T) {
	s := newSite(t)
	content := strings.Repeat("0123456789abcdef", 40_000)
	_, k := s.file(t, "/a.bin", "", content, 2)
	for range 3 {
		res, _ := s.do(t, "HEAD", "/d/"+k)
		require.Equal(t, 200, res.StatusCode, "HEAD is free")
		require.Equal(t, fmt.Sprint(len(content)), res.Header.Get("Content-Length"))
	}
	for range 2 {
		res, body := s.do(t, "GET", "/d/"+k, "Range", "bytes=0-0")
		require.Equal(t, 200, res.StatusCode, "there are no ranges")
		require.True(t, content == body)
		require.Equal(t, "none", res.Header.Get("Accept-Ranges"))
		require.Empty(t, res.Header.Get("ETag"))
		require.Equal(t, "application/octet-stream", res.Header.Get("Content-Type"))
		guardedBy(t, res.Header)
	}
	res, _ := s.do(t, "GET", "/d/"+k)
	require.Equal(t, 410, res.StatusCode)

	_, k = s.file(t, "/empty", "", "", 1)
	res, _ = s.do(t, "GET", "/d/"+k)
	require.Equal(t, 200, res.StatusCode)
	res, _ = s.do(t, "GET", "/d/"+k)
	require.Equal(t, 410, res.StatusCode, "an empty file counts too")
}

func TestRaceOnTheLastDownload(t *testing.T) {
	for range 20 {
		// All requests have passed the check before the first one counts.
		const racers = 8
		var checked sync.WaitGroup
		checked.Add(racers)
		s := newSite(t, func(f *servertest.Fake) (gateway.Redeemer, gateway.Opener) {
			return &barrier{Redeemer: f.Redeemer(), checked: &checked}, f.Library()
		})
		_, k := s.file(t, "/a", "", "content", 1)
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for range racers {
			wg.Go(func() {
				res, err := http.Get(s.url + "/d/" + k)
				if err != nil {
					return
				}
				defer res.Body.Close()
				b, _ := io.ReadAll(res.Body)
				switch {
				case res.StatusCode == 200 && string(b) == "content":
					won.Add(1)
				case res.StatusCode == 410 && string(b) == "gone: used up\n" && res.Header.Get("Content-Disposition") == "":
					lost.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, racers-1, lost.Load())
	}
}

type barrier struct {
	gateway.Redeemer
	checked *sync.WaitGroup
}

func (b *barrier) Count(ctx context.Context, secret string) (artifact.Token, error) {
	b.checked.Done()
	b.checked.Wait()
	return b.Redeemer.Count(ctx, secret)
}

// switching changes a file once its content has been read up to a point.
type switching struct {
	gateway.Opener
	fake *servertest.Fake
}

type switched struct {
	artifact.Content
	fake *servertest.Fake
	read int64
}

func (o switching) Open(ctx context.Context, id string) (artifact.Content, error) {
	c, err := o.Opener.Open(ctx, id)
	return &switched{c, o.fake, 0}, err
}

func (c *switched) Read(p []byte) (int, error) {
	n, err := c.Content.Read(p)
	if c.read += int64(n); c.read == c.Size() {
		c.fake.Change(c.View().ID)
	}
	return n, err
}

func TestAChangedFileIsCut(t *testing.T) {
	content := strings.Repeat("x", 1<<20)
	for _, limit := range []int{0, 5} {
		s := newSite(t, func(f *servertest.Fake) (gateway.Redeemer, gateway.Opener) {
			return f.Redeemer(), switching{f.Library(), f}
		})
		_, k := s.file(t, "/a", "", content, limit)
		res, err := http.Get(s.url + "/d/" + k)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.Equal(t, 200, res.StatusCode)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Less(t, len(b), len(content))
		res, _ = s.do(t, "GET", "/d/"+k)
		require.Equal(t, 410, res.StatusCode)
	}
}

// broken fails to open, in a way that speaks of paths.
type broken struct{ gateway.Opener }

func (broken) Show(context.Context, string) (artifact.View, error) {
	return artifact.View{}, errors.New("as well")
}

func (broken) Open(context.Context, string) (artifact.Content, error) {
	return nil, errors.New("open /srv/private/file: input/output error")
}

func TestInternalFailuresSayNothing(t *testing.T) {
	s := newSite(t, func(f *servertest.Fake) (gateway.Redeemer, gateway.Opener) { return f.Redeemer(), broken{} })
	_, k := s.file(t, "/a", "", "x", 1)
	res, body := s.do(t, "GET", "/d/"+k)
	require.Equal(t, 500, res.StatusCode)
	require.Equal(t, "failed\n", body)
	require.Contains(t, s.log.String(), "/srv/private/file")
}

func TestMetricsForLocalPeersOnly(t *testing.T) {
	s := newSite(t)
	_, k := s.file(t, "/a", "", "x", 0)
	s.do(t, "GET", "/d/"+k)
	s.do(t, "GET", "/d/guessed")
	res, body := s.do(t, "GET", "/metrics")
	require.Equal(t, 200, res.StatusCode)
	require.Contains(t, body, `vfsd_downloads_total{result="served"} 1`)
	require.Contains(t, body, `vfsd_downloads_total{result="unknown"} 1`)
	require.NotContains(t, body, k)
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host"} {
		res, _ = s.do(t, "GET", "/metrics", h, "127.0.0.1")
		require.Equal(t, 404, res.StatusCode, h)
	}
	f := servertest.New()
	h := gateway.New(f.Redeemer(), f.Library(), prometheus.NewRegistry(), servertest.Logger()).Handler()
	for addr, status := range map[string]int{"127.0.0.1:1": 200, "[::1]:1": 200, "10.0.0.1:1": 404, "[2001:db8::1]:1": 404, "": 404, "@": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.RemoteAddr = addr
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, addr)
	}
}

func TestNoHeaderCanBeInjected(t *testing.T) {
	s := newSite(t)
	_, k := s.file(t, "/a\r\nSet-Cookie: x=1\r\n\r\n<script>", "text/html\r\nX-Evil: 1", "x", 0)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /d/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", k)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Empty(t, res.Header.Get("Set-Cookie"))
	require.Empty(t, res.Header.Get("X-Evil"))
	require.Equal(t, "application/octet-stream", res.Header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment; "))
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
}
