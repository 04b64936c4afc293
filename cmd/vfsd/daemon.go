package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/attribution"
	"aimon.at/vfsd/attribution/cgroup"
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/gateway"
	"aimon.at/vfsd/index"
	"aimon.at/vfsd/session"
)

// vfsd is the daemon: every part of it, wired.
type vfsd struct {
	cfg      config
	log      *slog.Logger
	index    *index.Index
	sessions *session.Controller
	library  *artifact.Library
	tokens   *artifact.Tokens
	watcher  *attribution.Watcher
	cgroups  *cgroup.Groups // nil where none can be made
	mounts   *mounts
	control  *server.Server
	gateway  *gateway.Gateway
}

// newDaemon opens the index and wires everything. web is the gateway's listener or nil.
func newDaemon(cfg config, web net.Listener, log *slog.Logger) (_ *vfsd, err error) {
	d := &vfsd{cfg: cfg, log: log}
	if d.index, err = index.Open(filepath.Join(cfg.StateDir, "index"), log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close(context.Background()))
		}
	}()
	if d.sessions, err = session.New(d.index, log, session.WithEdge(attribution.NextTick)); err != nil {
		return nil, err
	}
	d.library = artifact.NewLibrary(d.index, d.sessions, d.unmounted, log)
	d.tokens = artifact.NewTokens(d.index, d.library, artifact.TokenConfig{MaxTTL: time.Duration(cfg.MaxTokenTTL)})
	if d.watcher, err = attribution.NewWatcher(d.declaredGone, log); err != nil {
		return nil, err
	}
	if d.cgroups, err = cgroup.New(d.sessions.ForgetCgroup, log); err != nil {
		log.Info("no cgroups can be made: vfsctl run goes by ancestry", "err", err)
		d.cgroups, err = nil, nil
	}
	d.mounts = newMounts(d)
	d.serversFor(web)
	return d, nil
}

func (d *vfsd) serversFor(web net.Listener) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	cfg := server.Config{
		Version: version, Socket: d.cfg.Socket, PublicURL: d.cfg.PublicURL, StateDir: d.cfg.StateDir,
		AllowForeignPIDNamespace: d.cfg.AllowForeignPID,
	}
	if web != nil {
		cfg.HTTP = web.Addr().String()
		if cfg.PublicURL == "" {
			cfg.PublicURL = "http://" + cfg.HTTP
		}
	}
	needs := server.Needs{
		Sessions: d.sessions, Artifacts: d.library, Tokens: d.tokens, Mounts: d.mounts, Checker: d,
	}
	if d.cgroups != nil {
		needs.Cgroups = d.cgroups
	}
	d.control = server.New(cfg, needs, reg, d.log)
	d.gateway = gateway.New(d.tokens, d.library, reg, d.log)
}

// close undoes newDaemon, as far as it came. The mounts are gone by then.
func (d *vfsd) close(ctx context.Context) error {
	var errs []error
	if d.mounts != nil {
		errs = append(errs, d.mounts.unmountAll(ctx))
	}
	if d.watcher != nil {
		d.watcher.Close()
	}
	if d.cgroups != nil {
		errs = append(errs, d.cgroups.Close())
	}
	if err := d.index.Close(); err != nil {
		errs = append(errs, fmt.Errorf("close the index: %w", err))
	}
	return errors.Join(errs...)
}

// unmounted opens the files of a session without a live mount: its last source, if that is there.
func (d *vfsd) unmounted(sessionID string) (artifact.Tree, func(), error) {
	s, err := d.sessions.Session(context.Background(), session.Caller{Privileged: true}, sessionID)
	if err != nil {
		return nil, nil, err
	}
	tree, err := worktree.Open(s.Source)
	if err != nil {
		return nil, nil, err
	}
	done := func() {
		if err := tree.Close(); err != nil {
			d.log.Warn("a source could not be closed", "session", sessionID, "err", err)
		}
	}
	return files{tree}, done, nil
}

// declaredGone ends a declared tool use whose last process is gone.
func (d *vfsd) declaredGone(sessionID, id string) {
	if err := d.sessions.DeclaredGone(sessionID, id); err != nil && !errors.Is(err, session.ErrNotFound) {
		d.log.Error("a declared tool use could not be ended", "session", sessionID, "toolUse", id, "err", err)
	}
}

// registry is what attribution asks: the controller, with every process that declares a tool use put
// under watch, so that the tool use ends with the last of them.
type registry struct {
	session.Registry
	watcher *attribution.Watcher
}

var _ attribution.Registry = registry{}

func (r registry) Declared(sessionID string, d session.Declaration) (session.ToolUse, error) {
	t, err := r.Registry.Declared(sessionID, d)
	if err == nil && t.Origin == session.OriginEnvironment && t.Open() {
		r.watcher.Seen(sessionID, t.ID, d.Process)
	}
	return t, err
}

// Check compares the index with itself, and the sessions of live mounts with it and with their files.
func (d *vfsd) Check(ctx context.Context, found func(string)) error {
	if err := d.index.Check(ctx, found); err != nil {
		return err
	}
	return d.library.Check(ctx, found)
}
