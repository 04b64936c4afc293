package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

func (g *Gateway) download(w http.ResponseWriter, r *http.Request) {
	t, err := g.tokens.Redeem(r.Context(), r.PathValue("token"))
	if err != nil {
		g.refuse(w, t, err, ended(t, err))
		return
	}
	c, err := g.artifacts.Open(r.Context(), t.ArtifactID)
	if errors.Is(err, session.ErrNotFound) {
		err = artifact.ErrGone // the token is known, so its bytes once were
	}
	if err != nil {
		g.refuse(w, t, err, g.state(r.Context(), t))
		return
	}
	defer c.Close()
	if err := c.Verify(); err != nil {
		g.refuse(w, t, err, g.state(r.Context(), t))
		return
	}
	describe(w.Header(), c)
	if t.MaxDownloads > 0 {
		g.counted(w, r, t, c)
		return
	}
	g.uncounted(w, r, t, c)
}

func describe(h http.Header, c artifact.Content) {
	t := contentType(c.View())
	h.Set("Content-Type", t)
	h.Set("Content-Disposition", disposition(c.View(), t))
}

// uncounted serves by the whole of HTTP: ranges, conditions, HEAD.
func (g *Gateway) uncounted(w http.ResponseWriter, r *http.Request, t artifact.Token, c artifact.Content) {
	if strings.Contains(r.Header.Get("Range"), ",") {
		// Several ranges in one answer: a server may ignore that (RFC 9110, 14.2), and so a small
		// request cannot ask for the file many times over.
		r.Header.Del("Range")
	}
	w.Header().Set("ETag", etag(c))
	v := &verified{Content: c}
	http.ServeContent(patient(w), r, "", c.ModTime(), v)
	if v.err != nil {
		g.cut(t, v.err)
	}
	g.downloads.WithLabelValues("served").Inc()
}

// counted serves the whole and nothing else. The download is counted once the first piece has been
// read and verified: a file that cannot be read costs none.
func (g *Gateway) counted(w http.ResponseWriter, r *http.Request, t artifact.Token, c artifact.Content) {
	w.Header().Set("Accept-Ranges", "none")
	w.Header().Set("Content-Length", strconv.FormatInt(c.Size(), 10))
	if r.Method == http.MethodHead {
		return
	}
	v := &verified{Content: c}
	first := make([]byte, min(c.Size(), pieceSize))
	if _, err := io.ReadFull(v, first); err != nil {
		g.refuse(w, t, err, g.state(r.Context(), t))
		return
	}
	if r.Context().Err() != nil {
		return // nobody is there to send it to
	}
	// From here on the client's going does not give the download back.
	ctx, secret := context.WithoutCancel(r.Context()), r.PathValue("token")
	if _, err := g.tokens.Count(ctx, secret); err != nil {
		t, _ = g.tokens.Redeem(ctx, secret) // somebody was faster: what became of it
		g.refuse(w, t, err, ended(t, err))
		return
	}
	g.send(patient(w), t, first, v)
}

func (g *Gateway) send(w http.ResponseWriter, t artifact.Token, first []byte, rest *verified) {
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(first); err != nil {
		panic(http.ErrAbortHandler)
	}
	_, err := io.CopyBuffer(w, io.LimitReader(rest, rest.Size()-int64(len(first))), make([]byte, pieceSize))
	if rest.err != nil {
		g.cut(t, rest.err)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	g.downloads.WithLabelValues("served").Inc()
}

// cut ends the connection: what was sent cannot be taken back, that it is not the whole can be shown.
func (g *Gateway) cut(t artifact.Token, err error) {
	g.downloads.WithLabelValues("cut").Inc()
	g.log.Warn("download cut", "artifact", t.ArtifactID, "error", err)
	panic(http.ErrAbortHandler)
}

// refuse answers with a failure, before any byte of the file. why is told of what is gone, and never the
// text of err, which may speak of paths.
func (g *Gateway) refuse(w http.ResponseWriter, t artifact.Token, err error, why string) {
	for _, name := range []string{"Content-Disposition", "Content-Length", "Accept-Ranges", "ETag"} {
		w.Header().Del(name)
	}
	switch {
	case errors.Is(err, session.ErrNotFound):
		g.downloads.WithLabelValues("unknown").Inc()
		line(w, http.StatusNotFound, "not found")
	case errors.Is(err, artifact.ErrGone):
		g.downloads.WithLabelValues("gone").Inc()
		line(w, http.StatusGone, "gone: "+why)
	default:
		g.downloads.WithLabelValues("failed").Inc()
		g.log.Error("download failed", "artifact", t.ArtifactID, "error", err)
		line(w, http.StatusInternalServerError, "failed")
	}
}

// ended says why a token is good for nothing any more.
func ended(t artifact.Token, err error) string {
	switch {
	case errors.Is(err, artifact.ErrRemoved):
		return "removed"
	case t.RevokedAt != nil:
		return "revoked"
	case t.MaxDownloads > 0 && t.Downloads >= t.MaxDownloads:
		return "used up"
	}
	return "expired"
}

// state says why the bytes are gone. Where the artifact is live again, they were others a moment ago.
func (g *Gateway) state(ctx context.Context, t artifact.Token) string {
	v, err := g.artifacts.Show(ctx, t.ArtifactID)
	switch {
	case err != nil:
		return string(artifact.Deleted)
	case v.State == artifact.Live:
		return string(artifact.Replaced)
	}
	return string(v.State)
}

// pieceSize is how much is read and verified at once.
const pieceSize = 128 << 10

// verified is content whose every piece was still the recorded one after it had been read.
type verified struct {
	artifact.Content
	err error // why it failed, nil for the end
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.Content.Read(p)
	if verr := v.Content.Verify(); verr != nil {
		n, err = 0, verr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.err = err
	}
	return n, err
}

// patientWriter gives the client progressTimeout anew for every piece it takes.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func patient(w http.ResponseWriter) http.ResponseWriter {
	return patientWriter{w, http.NewResponseController(w)}
}

func (p patientWriter) Write(b []byte) (int, error) {
	extend(p.control)
	return p.ResponseWriter.Write(b)
}

// extend lets the client take progressTimeout from now. Writers without deadlines, as in tests, have
// nothing to wait for.
func extend(c *http.ResponseController) {
	_ = c.SetWriteDeadline(time.Now().Add(progressTimeout))
}
