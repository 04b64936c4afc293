package server

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (s *Server) status(r request) (any, error) {
	sessions, err := s.Sessions.Sessions(r.Context(), r.caller)
	if err != nil {
		return nil, err
	}
	mounts := s.visibleMounts(r.caller)
	st := ctl.Status{
		Version: s.cfg.Version, PID: os.Getpid(), StartedAt: s.started.UTC(),
		UptimeSeconds: int64(time.Since(s.started).Seconds()),
		Socket:        s.cfg.Socket, HTTP: s.cfg.HTTP, StateDir: s.cfg.StateDir,
		Mounts: []ctl.Mount{}, Sessions: len(sessions), RecordingLag: pending(mounts),
	}
	for _, m := range mounts {
		st.Mounts = append(st.Mounts, wireMount(m))
	}
	return st, nil
}

func (s *Server) visibleMounts(c session.Caller) []Mount {
	var ms []Mount
	for _, m := range s.Mounts.Mounts() {
		if c.MaySee(m.Owner) {
			ms = append(ms, m)
		}
	}
	return ms
}

func (s *Server) listMounts(r request) (any, error) {
	return page(r, s.visibleMounts(r.caller), wireMount)
}

// maxCacheMillis keeps a duration in nanoseconds from running over: ten years.
const maxCacheMillis = 10 * 365 * 24 * 3600 * 1000

func (s *Server) mount(r request) (any, error) {
	if err := r.rooted("mount"); err != nil {
		return nil, err
	}
	q, err := decode[ctl.MountRequest](r)
	if err != nil {
		return nil, err
	}
	if q.Source == "" || !filepath.IsAbs(q.Mountpoint) {
		return nil, fmt.Errorf("%w mount: a source and an absolute mountpoint are needed", session.ErrInvalid)
	}
	spec := MountSpec{
		Source: q.Source, Mountpoint: filepath.Clean(q.Mountpoint), SessionID: q.SessionID, Owner: q.Owner,
		Artifacts: q.Artifacts, AllowOther: q.AllowOther, Exclusive: q.Exclusive, Passthrough: q.Passthrough,
	}
	if q.CacheTimeoutMillis != nil {
		if *q.CacheTimeoutMillis < 0 || *q.CacheTimeoutMillis > maxCacheMillis {
			return nil, fmt.Errorf("%w cache timeout: %d ms, give 0 or more", session.ErrInvalid, *q.CacheTimeoutMillis)
		}
		d := time.Duration(*q.CacheTimeoutMillis) * time.Millisecond
		spec.CacheTimeout = &d
	}
	m, err := s.Mounts.Mount(r.Context(), spec)
	return wireMount(m), err
}

func (s *Server) unmount(r request) (any, error) {
	if err := r.rooted("unmount"); err != nil {
		return nil, err
	}
	mp := r.query("mountpoint")
	if !filepath.IsAbs(mp) {
		return nil, fmt.Errorf("%w unmount: an absolute mountpoint is needed", session.ErrInvalid)
	}
	mp = filepath.Clean(mp)
	detached, err := s.Mounts.Unmount(r.Context(), mp)
	return ctl.Unmounted{Mountpoint: mp, Detached: detached}, err
}

// maxProblems bounds the answer of a check: an index that is wrong everywhere is told as well by this
// many lines.
const maxProblems = 10_000

func (s *Server) check(r request) (any, error) {
	if err := r.rooted("check"); err != nil {
		return nil, err
	}
	p := ctl.Problems{Problems: []ctl.Problem{}}
	err := s.Checker.Check(r.Context(), func(line string) {
		if len(p.Problems) == maxProblems {
			p.Truncated = true
			return
		}
		p.Problems = append(p.Problems, ctl.Problem{Message: line})
	})
	return p, err
}
