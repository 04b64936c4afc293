package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/attribution"
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/fusefs"
	"aimon.at/vfsd/session"
)

// mounts adds, removes and lists the mounts of the daemon. It implements server.Mounts.
type mounts struct {
	d   *vfsd
	log *slog.Logger

	changing sync.Mutex // held while a mount is added or removed: one at a time

	mu   sync.Mutex        // guards live and what mount.detached says
	live map[string]*mount // by session
}

// mount is one live mount and all that serves it.
type mount struct {
	info     server.Mount
	lock     *os.File
	tree     *worktree.Direct
	recorder *artifact.Recorder
	resolver *attribution.Resolver
	fs       *fusefs.Mount
	detached bool // its name is gone, something still uses it
	away     sync.Once
	ended    chan struct{} // closed when everything of it is put away
}

var _ server.Mounts = (*mounts)(nil)

// recordWithin is how long a change may wait for others to be written to the index with: what a kill -9
// can take from the record of tool uses that are open.
const recordWithin = 10 * time.Millisecond

func newMounts(d *vfsd) *mounts {
	return &mounts{d: d, log: d.log, live: map[string]*mount{}}
}

// mountConfigured adds a mount of the configuration. The channel is closed when it has ended.
func (m *mounts) mountConfigured(ctx context.Context, c mountConfig) (<-chan struct{}, error) {
	owner, err := c.owner()
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(c.CacheTimeout)
	artifacts := c.Artifacts.or(false)
	mt, err := m.add(ctx, server.MountSpec{
		Source: c.Source, Mountpoint: c.Mountpoint, SessionID: c.Session, Owner: &owner, Artifacts: &artifacts,
		AllowOther: c.AllowOther, Exclusive: c.Exclusive, CacheTimeout: &timeout, Passthrough: c.Passthrough,
	})
	if err != nil {
		return nil, err
	}
	return mt.ended, nil
}

// Mount adds a mount.
func (m *mounts) Mount(ctx context.Context, s server.MountSpec) (server.Mount, error) {
	mt, err := m.add(ctx, s)
	if err != nil {
		return server.Mount{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return mt.view(), nil
}

func (m *mounts) add(ctx context.Context, s server.MountSpec) (*mount, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if err := complete(&s); err != nil {
		return nil, err
	}
	if err := m.check(s); err != nil {
		return nil, err
	}
	mt := &mount{ended: make(chan struct{})}
	mt.info.SessionID = s.SessionID
	if err := m.build(ctx, mt, s); err != nil {
		return nil, errors.Join(err, m.putAway(context.WithoutCancel(ctx), mt))
	}
	m.mu.Lock()
	m.live[mt.info.SessionID] = mt
	m.mu.Unlock()
	go m.await(mt)
	return mt, nil
}

// complete resolves paths and fills in what was left out.
func complete(s *server.MountSpec) (err error) {
	if s.Source, err = resolveSource(s.Source); err != nil {
		return err
	}
	if s.Mountpoint, err = fusefs.CheckMountpoint(s.Mountpoint); err != nil {
		return err
	}
	if s.SessionID == "" {
		s.SessionID = defaultSession(s.Mountpoint, s.Source)
	}
	if s.Owner == nil {
		uid := uint32(os.Getuid())
		s.Owner = &uid
	}
	if s.Artifacts == nil {
		s.Artifacts = new(bool)
	}
	if s.CacheTimeout == nil {
		standard := time.Duration(defaultMount().CacheTimeout)
		s.CacheTimeout = &standard
	}
	switch s.Passthrough {
	case "":
		s.Passthrough = "auto"
	case "auto", "off":
	default:
		return fmt.Errorf("%w passthrough %q: use auto or off", session.ErrInvalid, s.Passthrough)
	}
	return session.CheckID("session", s.SessionID)
}

// check refuses what overlaps.
func (m *mounts) check(s server.MountSpec) error {
	state, err := realPath(m.d.cfg.StateDir)
	if err != nil {
		return err
	}
	others, err := liveMounts(s.Mountpoint)
	if err != nil {
		return err
	}
	others = append(others, place{what: "state directory", path: state, kind: session.ErrInvalid})
	if err := checkSource(s.Source, append(others, place{what: "mountpoint", path: s.Mountpoint, kind: session.ErrInvalid})); err != nil {
		return err
	}
	return checkMountpoint(s.Mountpoint, append(others, place{what: "source", path: s.Source, kind: session.ErrInvalid}))
}

// build makes every part of mt; what it made before it failed is in mt.
func (m *mounts) build(ctx context.Context, mt *mount, s server.MountSpec) (err error) {
	if err := fusefs.CheckDevice(); err != nil {
		return err
	}
	if mt.lock, err = lockSource(s.Source); err != nil {
		return err
	}
	if err := m.sameSource(ctx, s); err != nil {
		return err
	}
	if mt.tree, err = worktree.Open(s.Source); err != nil {
		return err
	}
	opened, err := m.d.sessions.OpenSession(ctx, session.Session{
		ID: s.SessionID, Owner: *s.Owner, Source: s.Source, Artifacts: *s.Artifacts,
	})
	if err != nil {
		return err
	}
	if err := m.watchDeclared(ctx, opened.ID); err != nil {
		return err
	}
	tree := files{mt.tree}
	mt.recorder, err = artifact.NewRecorder(ctx, artifact.RecorderConfig{
		SessionID: opened.ID, Store: m.d.index, Tree: tree, Sessions: m.d.sessions, Log: m.log, Batch: recordWithin,
	})
	if err != nil {
		return err
	}
	if err := m.d.sessions.AttachMount(opened.ID, mt.recorder); err != nil {
		return err
	}
	mt.info = server.Mount{
		Mountpoint: s.Mountpoint, Source: s.Source, SessionID: opened.ID, Owner: opened.Owner,
		Artifacts: opened.Artifacts, Since: time.Now().UTC(),
	}
	m.d.library.Attach(opened.ID, mt.recorder, tree)
	mt.resolver = attribution.New(opened.ID, registry{m.d.sessions.Registry(), m.d.watcher}, m.log)
	mt.fs, err = fusefs.New(fusefs.Config{
		Mountpoint: s.Mountpoint, CacheTimeout: *s.CacheTimeout, Exclusive: s.Exclusive,
		AllowOther: s.AllowOther, NoPassthrough: s.Passthrough == "off",
	}, mt.tree, attributor{mt.resolver}, mt.recorder, m.log)
	if err != nil {
		return err
	}
	mt.recorder.SetHandles(mt.fs)
	mt.info.Passthrough = mt.fs.Passthrough()
	return nil
}

// sameSource refuses to serve a session from another tree than before: its record is of files there.
func (m *mounts) sameSource(ctx context.Context, s server.MountSpec) error {
	before, err := m.d.sessions.Session(ctx, session.Caller{Privileged: true}, s.SessionID)
	switch {
	case errors.Is(err, session.ErrNotFound), err == nil && (before.Source == "" || before.Source == s.Source):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: session %s is of the source %s; name another session, or delete that one (vfsctl session delete)", session.ErrConflict, s.SessionID, before.Source)
}

// watchDeclared puts the processes of declared tool uses that are open since an earlier daemon under
// watch again: those that are gone meanwhile end.
func (m *mounts) watchDeclared(ctx context.Context, sessionID string) error {
	open, err := m.d.index.ToolUses(ctx, sessionID, true)
	if err != nil {
		return err
	}
	for _, t := range open {
		if t.Origin == session.OriginEnvironment && t.Process != nil {
			m.d.watcher.Seen(sessionID, t.ID, *t.Process)
		}
	}
	return nil
}

// await puts a mount away when the kernel has ended it, whoever asked for that.
func (m *mounts) await(mt *mount) {
	<-mt.fs.Done()
	grace, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := m.putAway(grace, mt); err != nil {
		m.log.Error("a mount could not be put away cleanly", "mountpoint", mt.info.Mountpoint, "err", err)
	}
}

// putAway undoes build, as far as it came, and forgets the mount. What is recorded after it is lost.
func (m *mounts) putAway(ctx context.Context, mt *mount) (err error) {
	mt.away.Do(func() {
		defer close(mt.ended)
		var errs []error
		m.d.library.Detach(mt.info.SessionID)
		if mt.recorder != nil {
			errs = append(errs, mt.recorder.Close(ctx))
		}
		// Not before: an end that is answered meanwhile must find its entries.
		m.d.sessions.DetachMount(mt.info.SessionID)
		if mt.resolver != nil {
			mt.resolver.Close()
		}
		if mt.tree != nil && (mt.fs == nil || ended(mt.fs)) {
			errs = append(errs, mt.tree.Close())
		}
		if mt.lock != nil {
			errs = append(errs, mt.lock.Close())
		}
		m.mu.Lock()
		if m.live[mt.info.SessionID] == mt {
			delete(m.live, mt.info.SessionID)
		}
		m.mu.Unlock()
		err = errors.Join(errs...)
	})
	return err
}

func ended(fs *fusefs.Mount) bool {
	select {
	case <-fs.Done():
		return true
	default:
		return false
	}
}

// Unmount removes a mount. A busy one is detached: its name is free at once, and what is open goes on
// working, and is recorded, until its last user is done.
func (m *mounts) Unmount(ctx context.Context, mountpoint string) (detached bool, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	mt := m.at(mountpoint)
	if mt == nil {
		return false, fmt.Errorf("%w: nothing is mounted by this daemon on %s; see vfsctl mounts", session.ErrNotFound, mountpoint)
	}
	return m.unmount(ctx, mt)
}

// at returns the mount that has the mountpoint's name, nil where none has.
func (m *mounts) at(mountpoint string) *mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mt := range m.live {
		if mt.info.Mountpoint == mountpoint && !mt.detached {
			return mt
		}
	}
	return nil
}

func (m *mounts) unmount(ctx context.Context, mt *mount) (detached bool, err error) {
	if detached, err = mt.fs.Unmount(ctx); err != nil {
		return false, err
	}
	if detached {
		m.mu.Lock()
		mt.detached = true
		m.mu.Unlock()
		m.log.Warn("the mount is busy and was detached: it ends with its last user, or with this daemon", "mountpoint", mt.info.Mountpoint)
		return true, nil
	}
	select {
	case <-mt.ended:
		return false, nil
	case <-ctx.Done():
		return false, fmt.Errorf("unmount %s: %w", mt.info.Mountpoint, ctx.Err())
	}
}

// unmountAll ends every mount because the daemon ends: what a detached one still has open ends with it.
func (m *mounts) unmountAll(ctx context.Context) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.live))
	m.mu.Unlock()
	var errs []error
	for _, mt := range all {
		detached, err := m.unmount(ctx, mt)
		if detached {
			err = m.putAway(ctx, mt)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Mounts lists the live mounts in order of mounting.
func (m *mounts) Mounts() []server.Mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]server.Mount, 0, len(m.live))
	for _, mt := range m.live {
		list = append(list, mt.view())
	}
	slices.SortFunc(list, func(a, b server.Mount) int { return a.Since.Compare(b.Since) })
	return list
}

// view is the mount as listings show it. mounts.mu is held.
func (mt *mount) view() server.Mount {
	v := mt.info
	v.Detached = mt.detached
	v.Pending = mt.recorder.Pending()
	return v
}

// attributor lets fusefs ask attribution.
type attributor struct{ r *attribution.Resolver }

func (a attributor) Attribute(ctx context.Context, c fusefs.Caller) session.Attribution {
	return a.r.Attribute(ctx, c.PID, c.UID)
}
