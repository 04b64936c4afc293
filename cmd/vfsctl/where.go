package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// The variables that a command line defaults to, and that run sets for its command.
const (
	envSession   = "VFSD_SESSION"
	envExecution = "VFSD_EXECUTION_ID"
	envToolUse   = "VFSD_TOOL_USE_ID"
	envArtifact  = "VFSD_ARTIFACT"
)

func (a *app) sessionFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.session, "session", os.Getenv(envSession), "session (default "+envSession+", else the only one, else that of the mount around the current directory)")
	return c
}

// sessionID returns which session is meant: the named one, else the only one, else that of the mount
// that holds the current directory. Where an execution is named, "" lets the daemon find its session.
func (a *app) sessionID(ctx context.Context, executionID string) (string, error) {
	if err := wellFormed(a.session, executionID); err != nil {
		return "", err
	}
	if a.session != "" || executionID != "" {
		return a.session, nil
	}
	all, err := a.client.Sessions(ctx)
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 0:
		return "", fmt.Errorf("session: %w: there is none yet, a mount makes one", session.ErrNotFound)
	case 1:
		return all[0].ID, nil
	}
	return a.sessionHere(ctx)
}

// wellFormed tells a mistake in an id from one that does not exist.
func wellFormed(sessionID, executionID string) error {
	if sessionID != "" {
		if err := session.CheckID("session", sessionID); err != nil {
			return err
		}
	}
	if executionID == "" {
		return nil
	}
	return session.CheckID("execution", executionID)
}

// inSession calls f with the session that is meant. Where the daemon finds the execution in several, it is that of the
// mount that holds the current directory.
func inSession[T any](ctx context.Context, a *app, executionID string, f func(sessionID string) (T, error)) (T, error) {
	s, err := a.sessionID(ctx, executionID)
	if err != nil {
		var none T
		return none, err
	}
	v, err := f(s)
	if s != "" || !errors.Is(err, session.ErrConflict) {
		return v, err
	}
	// The conflict may be another one, of an execution that is found.
	if _, found := a.client.Execution(ctx, "", executionID); !errors.Is(found, session.ErrConflict) {
		return v, err
	}
	here, lost := a.sessionHere(ctx)
	if lost != nil {
		return v, err
	}
	return f(here)
}

func (a *app) sessionHere(ctx context.Context) (string, error) {
	mounts, err := a.client.Mounts(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err == nil {
		// The shell's name of it may lead through symbolic links.
		dir, err = filepath.EvalSymlinks(dir)
	}
	if m, ok := around(mounts, dir); ok && err == nil {
		return m.SessionID, nil
	}
	return "", fmt.Errorf("%w: there are several sessions: name one by --session or %s, or call from inside a mount", session.ErrConflict, envSession)
}

// around returns the innermost mount that dir is in.
func around(mounts []ctl.Mount, dir string) (ctl.Mount, bool) {
	var best ctl.Mount
	for _, m := range mounts {
		inside := dir == m.Mountpoint || strings.HasPrefix(dir, strings.TrimSuffix(m.Mountpoint, "/")+"/")
		if inside && len(m.Mountpoint) > len(best.Mountpoint) {
			best = m
		}
	}
	return best, best.Mountpoint != ""
}

// absolute returns the absolute path of p without symbolic links on the way to its last name. The last name is not
// looked at: it may be a link that is meant itself, or a mount that does not answer.
func absolute(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	return abs, nil
}

// inMount turns a path as people type it into one relative to the mount's root. An absolute path or one
// below the current directory that lies in a mount is taken from there; every other one is already
// relative to the root.
func (a *app) inMount(ctx context.Context, p string) (string, error) {
	mounts, err := a.client.Mounts(ctx)
	if err != nil {
		return "", err
	}
	abs, err := absolute(p)
	if err != nil {
		return "", err
	}
	if m, ok := around(mounts, abs); ok {
		if a.session == "" {
			a.session = m.SessionID
		}
		return "/" + strings.TrimPrefix(strings.TrimPrefix(abs, m.Mountpoint), "/"), nil
	}
	return filepath.Join("/", p), nil
}
