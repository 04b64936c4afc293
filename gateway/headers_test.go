package gateway

import (
	"mime"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

func viewOf(path, mimeType string) artifact.View {
	return artifact.View{Entry: artifact.Entry{Names: []string{path}, MimeType: mimeType}}
}

func TestContentType(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "application/octet-stream",
		"application/pdf":                   "application/pdf",
		"text/plain":                        "text/plain; charset=utf-8",
		"text/csv; charset=utf-16le":        "text/csv; charset=utf-16le",
		"text/html; charset=utf-8":          "text/html; charset=utf-8",
		"nonsense":                          "application/octet-stream",
		"text/html\r\nX: y":                 "application/octet-stream",
		"application/json":                  "application/json",
		"image/svg+xml":                     "image/svg+xml",
		"application/x; a=\"b\r\nX-Evil: 1": "application/octet-stream",
	} {
		require.Equal(t, want, contentType(viewOf("/a", in)), "%q", in)
	}
}

func TestDisposition(t *testing.T) {
	for _, row := range []struct{ path, want string }{
		{"/out/report.pdf", `attachment; filename="report.pdf"; filename*=UTF-8''report.pdf`},
		{"/a b", `attachment; filename="a b"; filename*=UTF-8''a%20b`},
		{"/Übersicht €.txt", `attachment; filename="_bersicht _.txt"; filename*=UTF-8''%C3%9Cbersicht%20%E2%82%AC.txt`},
		{`/q"uote\back`, `attachment; filename="q_uote_back"; filename*=UTF-8''q%22uote_back`},
		{"/100%41.txt", `attachment; filename="100_41.txt"; filename*=UTF-8''100%2541.txt`},
		{"/a\r\nX: y", `attachment; filename="a__X: y"; filename*=UTF-8''a__X%3A%20y`},
		{"/gnp.\u202eexe", `attachment; filename="gnp._exe"; filename*=UTF-8''gnp._exe`},
		{"/a\xff\xfeb", `attachment; filename="a_b"; filename*=UTF-8''a_b`},
		{"/...", `attachment; filename="file"; filename*=UTF-8''file`},
		{"/it's;x=y", `attachment; filename="it's;x=y"; filename*=UTF-8''it%27s%3Bx%3Dy`},
	} {
		require.Equal(t, row.want, disposition(viewOf(row.path, ""), "application/pdf"))
		_, params, err := mime.ParseMediaType(row.want)
		require.NoError(t, err)
		require.NotEmpty(t, params["filename"])
	}
}

func TestInlineTypes(t *testing.T) {
	for typ, want := range map[string]string{
		"image/png": "inline", "image/jpeg": "inline", "image/gif": "inline", "image/webp": "inline", "image/avif": "inline",
		"image/svg+xml": "attachment", "text/html; charset=utf-8": "attachment", "application/pdf": "attachment",
		"text/plain": "attachment", "image/vnd.mozilla.apng": "attachment",
	} {
		v := viewOf("/a", typ)
		require.Regexp(t, "^"+want+"; ", disposition(v, contentType(v)), typ)
	}
}

func FuzzDisposition(f *testing.F) {
	f.Add("/a\r\nb", "text/html")
	f.Add("/\xff\"%", "image/png; x=\"\n\"")
	f.Fuzz(func(t *testing.T, path, mimeType string) {
		v := viewOf(path, mimeType)
		for _, h := range []string{disposition(v, contentType(v)), contentType(v)} {
			for _, c := range []byte(h) {
				require.True(t, c >= ' ' && c <= '~', "%q", h)
			}
			_, _, err := mime.ParseMediaType(h)
			require.NoError(t, err, "%q", h)
		}
	})
}
