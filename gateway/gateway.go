// Package gateway serves artifacts to people: HTTP downloads by token.
//
// # Routes
//
// GET or HEAD /d/{token} and /d/{token}/{fileName} answer with the bytes; the file name is there for
// the reader of the link and decides nothing. /healthz answers while the daemon runs. /metrics
// answers loopback peers whose request came through no proxy.
//
// # Guarantees
//
// An unknown token is 404. One that expired, was revoked or used up, and one whose bytes are gone, is
// 410 with a line that says which. What is served is what was recorded: the content is verified
// before each piece of it is sent, and where it has changed meanwhile the connection is cut, which
// the client sees by the announced length.
//
// A token with a limit of downloads knows no ranges; HEAD is free, and a GET is counted right before its
// first byte is sent.
//
// # Hazards
//
// File names and types come from the tree and are hostile: they reach headers only through
// disposition and contentType. The secret of a token is in the URL: no request line is ever logged.
package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"aimon.at/vfsd/artifact"
)

// Opener gives the bytes of an artifact (artifact.Library).
type Opener interface {
	// Open returns the bytes of a final artifact. The caller closes it. It is artifact.ErrGone where
	// they are replaced, deleted or lost, session.ErrNotFound where there is no such artifact.
	Open(ctx context.Context, id string) (artifact.Content, error)

	// Show returns the artifact, whose State says why it is gone.
	Show(ctx context.Context, id string) (artifact.View, error)
}

// Redeemer knows the tokens (artifact.Tokens).
type Redeemer interface {
	// Redeem returns the token of a secret that a download may begin with. It is session.ErrNotFound
	// where it never existed, artifact.ErrGone, together with the token, where it expired, was
	// revoked or is used up.
	Redeem(ctx context.Context, secret string) (artifact.Token, error)

	// Count counts one download, in one step with the test that the token is still good:
	// artifact.ErrGone where it is not.
	Count(ctx context.Context, secret string) (artifact.Token, error)
}

// Gateway serves downloads.
type Gateway struct {
	tokens    Redeemer
	artifacts Opener
	log       *slog.Logger
	downloads *prometheus.CounterVec
	handler   http.Handler
}

// New returns a gateway that registers its metrics with reg and serves all of reg at /metrics.
func New(tokens Redeemer, artifacts Opener, reg *prometheus.Registry, log *slog.Logger) *Gateway {
	g := &Gateway{tokens: tokens, artifacts: artifacts, log: log}
	g.downloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vfsd_downloads_total",
		Help: "Requests for the bytes of an artifact by token, by result.",
	}, []string{"result"})
	reg.MustRegister(g.downloads)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /d/{token}", g.download)
	mux.HandleFunc("GET /d/{token}/{fileName}", g.download)
	mux.HandleFunc("GET /healthz", healthy)
	mux.Handle("GET /metrics", localOnly(promhttp.HandlerFor(reg, promhttp.HandlerOpts{})))
	mux.HandleFunc("/", notFound)
	g.handler = guarded(readOnly(mux))
	return g
}

// Handler answers all routes.
func (g *Gateway) Handler() http.Handler { return g.handler }

// The times that a client has. A download may take as long as it moves: progressTimeout bounds the
// wait for a client that takes no more bytes. There is no ReadTimeout: net/http would end the context of
// a download that takes longer, and no request has a body.
const (
	headerTimeout   = 15 * time.Second
	progressTimeout = time.Minute
	idleTimeout     = time.Minute
	stopTimeout     = 5 * time.Second
)

// Serve answers on l until ctx is done, then waits a moment for downloads that run. It closes l.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           g.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	}()
	err := srv.Serve(limit(l, maxConnections()))
	if ctx.Err() != nil {
		<-stopped
		return nil
	}
	return err
}
