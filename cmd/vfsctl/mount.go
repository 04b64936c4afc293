package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) mountCmd() *cobra.Command {
	var r ctl.MountRequest
	var owner string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "mount SOURCE MOUNTPOINT", Short: "Add a mount to the running daemon", Args: cobra.ExactArgs(2),
	}
	c.Flags().StringVar(&r.SessionID, "session", "", "session of the mount (default: made of its mountpoint and source)")
	c.Flags().StringVar(&owner, "owner", "", "owner of the session, a name or a uid (default: the daemon's user)")
	choiceFlag(c, &r.Artifacts, "artifacts", "on", "off", "whether new executions make artifacts of undeclared files")
	c.Flags().BoolVar(&r.AllowOther, "allow-other", false, "other users may enter")
	c.Flags().BoolVar(&r.Exclusive, "exclusive", false, "nobody else touches the source: cache for long")
	c.Flags().DurationVar(&timeout, "cache-timeout", 0, "how long the kernel may trust names and attributes (default the daemon's)")
	c.Flags().StringVar(&r.Passthrough, "passthrough", "", "auto or off (default the daemon's)")
	c.RunE = a.verb(func(ctx context.Context, args []string) error {
		if err := completeMount(&r, args, owner); err != nil {
			return err
		}
		if c.Flags().Changed("cache-timeout") {
			r.CacheTimeoutMillis = new(timeout.Milliseconds())
		}
		m, err := a.client.Mount(ctx, r)
		if err != nil {
			return err
		}
		return one(a, m, func() { a.line("mounted %s at %s, session %s", m.Source, m.Mountpoint, m.SessionID) })
	})
	return c
}

// completeMount makes paths absolute, since the daemon has a current directory of its own.
func completeMount(r *ctl.MountRequest, args []string, owner string) (err error) {
	if r.Source = args[0]; !strings.Contains(r.Source, "://") {
		if r.Source, err = filepath.Abs(r.Source); err != nil {
			return err
		}
	}
	if r.Mountpoint, err = filepath.Abs(args[1]); err != nil {
		return err
	}
	if owner == "" {
		return nil
	}
	uid, err := ctl.LookupOwner(owner)
	r.Owner = &uid
	return err
}
