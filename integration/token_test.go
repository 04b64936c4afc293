package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type issued struct {
	Token, URL string
	ExpiresAt  time.Time
}

func (d *daemon) issue(id string, flags ...string) issued {
	d.t.Helper()
	return decode[issued](d.t, d.ctl(append([]string{"artifacts", "token", id, "--json"}, flags...)...))
}

// fetch makes a request and returns status, headers and body.
func (d *daemon) fetch(method, url string, headers ...string) (int, http.Header, string) {
	d.t.Helper()
	req, err := http.NewRequest(method, url, nil)
	require.NoError(d.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: commandDeadline}
	resp, err := client.Do(req)
	require.NoError(d.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	return resp.StatusCode, resp.Header, string(body)
}

func TestDownload(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `printf 0123456789 > 'quarterly "report".csv'`)
	id := d.artifacts()[0].ID
	link := d.issue(id, "--ttl", "1h")
	require.WithinDuration(t, time.Now().Add(time.Hour), link.ExpiresAt, time.Minute)
	require.True(t, strings.HasPrefix(link.URL, d.http+"/d/") || strings.HasPrefix(link.URL, "http://"), link.URL)

	status, header, body := d.fetch("GET", link.URL)
	require.Equal(t, 200, status)
	require.Equal(t, "0123456789", body)
	require.Contains(t, header.Get("Content-Disposition"), "attachment")
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-referrer", header.Get("Referrer-Policy"))
	require.Equal(t, "private, no-store", header.Get("Cache-Control"))
	require.Contains(t, header.Get("Content-Security-Policy"), "sandbox")
	require.NotEmpty(t, header.Get("ETag"))

	status, _, body = d.fetch("GET", link.URL, "Range", "bytes=2-4")
	require.Equal(t, 206, status)
	require.Equal(t, "234", body)
	status, header, body = d.fetch("HEAD", link.URL)
	require.Equal(t, 200, status)
	require.Equal(t, "10", header.Get("Content-Length"))
	require.Empty(t, body)
	status, _, _ = d.fetch("POST", link.URL)
	require.Equal(t, 405, status)
	require.NotContains(t, d.stderr.String(), link.Token)
}

func TestTokenEnds(t *testing.T) {
	d := startMount(t)
	d.tool("call_1", `printf 0123456789 > a.txt`)
	id := d.artifacts()[0].ID

	guessed := d.issue(id, "--ttl", "1h")
	status, _, _ := d.fetch("GET", strings.Replace(guessed.URL, guessed.Token, "A"+guessed.Token[1:len(guessed.Token)-1]+"_", 1))
	require.Equal(t, 404, status)

	once := d.issue(id, "--ttl", "1h", "--max-downloads", "1")
	status, header, _ := d.fetch("HEAD", once.URL)
	require.Equal(t, 200, status)
	require.Equal(t, "none", header.Get("Accept-Ranges"))
	status, _, body := d.fetch("GET", once.URL, "Range", "bytes=0-0")
	require.Equal(t, 200, status)
	require.Equal(t, "0123456789", body)
	status, _, _ = d.fetch("GET", once.URL)
	require.Equal(t, 410, status)

	revoked := d.issue(id, "--ttl", "1h")
	d.ctl("tokens", "revoke", revoked.Token)
	status, _, _ = d.fetch("GET", revoked.URL)
	require.Equal(t, 410, status)

	short := d.issue(id, "--ttl", "1s")
	require.Eventually(t, func() bool {
		status, _, _ := d.fetch("GET", short.URL)
		return status == 410
	}, commandDeadline, 100*time.Millisecond)

	for _, args := range [][]string{{"--ttl", "0s"}, {"--ttl", "-1h"}, {"--ttl", "100000h"}, {"--max-downloads", "-1"}, {"--max-downloads", "0"}} {
		code, message := d.ctlStatus(append([]string{"artifacts", "token", id}, args...)...)
		require.Equal(t, 2, code, message)
	}

	live := d.issue(id, "--ttl", "1h")
	d.stop()
	d.start()
	live.URL = d.http + "/d/" + live.Token
	status, _, _ = d.fetch("GET", live.URL)
	require.Equal(t, 200, status)
	d.sh(`printf 9876543210 > a.txt`)
	status, _, body = d.fetch("GET", live.URL)
	require.Equal(t, 410, status)
	require.Contains(t, body, "replaced")

	code, message := d.ctlStatus("artifacts", "token", id)
	require.Equal(t, 1, code, message)
	require.Contains(t, message, "replaced")
	d.ctl("tokens", "revoke", "--artifact", id)
	d.ctl("check")
}
