package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the daemon, its mounts and how far recording lags", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			s, err := a.client.Status(ctx)
			if err != nil {
				return err
			}
			return one(a, s, func() { a.showStatus(s) })
		}),
	}
}

func (a *app) showStatus(s ctl.Status) {
	http := s.HTTP
	if http == "" {
		http = "off"
	}
	a.fields(
		"vfsd", fmt.Sprintf("%s, pid %d, up %s", s.Version, s.PID, span(time.Duration(s.UptimeSeconds)*time.Second)),
		"socket", s.Socket, "http", http, "state", s.StateDir,
		"sessions", s.Sessions, "recording lag", fmt.Sprintf("%d events", s.RecordingLag),
		"mounts", len(s.Mounts),
	)
	if len(s.Mounts) > 0 {
		fmt.Fprintln(a.out)
		_ = a.showMounts(s.Mounts)
	}
}
