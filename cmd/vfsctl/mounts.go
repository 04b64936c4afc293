package main

import (
	"context"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) mountsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "mounts", Short: "List the live mounts", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			ms, err := a.client.Mounts(ctx)
			if err != nil {
				return err
			}
			return a.showMounts(ms)
		}),
	}
}

func (a *app) showMounts(ms []ctl.Mount) error {
	return rows(a, ms, "MOUNTPOINT SOURCE SESSION OWNER ARTIFACTS PASSTHROUGH PENDING SINCE", func(m ctl.Mount) []any {
		at := m.Mountpoint
		if m.Detached {
			at += " (detached)"
		}
		return []any{at, m.Source, m.SessionID, m.Owner, onOff(m.ArtifactsDefault), onOff(m.Passthrough), m.Pending, ago(m.Since)}
	})
}
