// Package server answers the control API: HTTP with JSON over a unix socket, see package ctl for the
// values and codes.
//
// # Who asks
//
// Every request is judged by the kernel's credentials of its connection's peer (SO_PEERCRED), as they
// were at connect. Root and the daemon's own user may do everything; an owner sees and changes
// everything of their own sessions; what belongs to others is not found, with the same words as
// what does not exist. Verbs that act on the daemon as a whole (mount, unmount, check) are refused
// to everybody else. Peers in another pid namespace than the daemon's are refused unless the
// configuration allows them.
//
// # Guarantees and hazards
//
// Handlers return a value or an error; answer.go alone writes either, and alone translates errors.
// Request bodies are bounded, unknown fields and parameters are refused. A caller that is not
// privileged never reads the text of an internal failure. Ids and paths never become metric labels.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config is what the server tells about the daemon and how it judges.
type Config struct {
	Version   string
	Socket    string
	HTTP      string // the gateway's address; "" for none
	PublicURL string // what links start with, "http://host:port"; "" where no gateway serves them
	StateDir  string

	// AllowForeignPIDNamespace serves peers in other pid namespaces than the daemon's.
	AllowForeignPIDNamespace bool
}

// Needs are the parts of the daemon that the API drives. Cgroups may be nil; all else is set.
type Needs struct {
	Sessions  Sessions
	Artifacts Artifacts
	Tokens    Tokens
	Cgroups   Cgroups
	Mounts    Mounts
	Checker   Checker
}

// Server answers the control API.
type Server struct {
	Needs
	cfg     Config
	log     *slog.Logger
	started time.Time
	uid     uint32 // the daemon's own
	metrics *metrics
	handler http.Handler
}

// New returns a server that registers its metrics with reg and serves all of reg at /metrics.
func New(cfg Config, needs Needs, reg *prometheus.Registry, log *slog.Logger) *Server {
	s := &Server{Needs: needs, cfg: cfg, log: log, started: time.Now(), uid: uint32(os.Geteuid())}
	s.metrics = newMetrics(reg, needs.Mounts)
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, s.serve(r))
	}
	mux.Handle("GET /metrics", s.admitted(promhttp.HandlerFor(reg, promhttp.HandlerOpts{})))
	s.handler = mux
	return s
}

// The times that a peer has. Answers may take long (a check, a large download), so that writing has
// no limit of its own: the peer is a local process, and a connection costs a goroutine. A ReadTimeout would
// end the context of what takes longer; decode bounds the wait for a body instead.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

func connContext(ctx context.Context, c net.Conn) context.Context {
	if p, ok := c.(*peerConn); ok {
		return withPeer(ctx, p.peer)
	}
	return ctx
}

// Serve answers on l until ctx is done, then waits a moment for what runs. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ConnContext:       connContext,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
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
	err := srv.Serve(s.guard(l))
	if ctx.Err() != nil {
		<-stopped
		return nil
	}
	return err
}
