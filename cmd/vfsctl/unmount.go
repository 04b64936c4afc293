package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) unmountCmd() *cobra.Command {
	return &cobra.Command{
		Use: "unmount MOUNTPOINT", Short: "Remove a mount of the running daemon", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			mp, err := absolute(args[0])
			if err != nil {
				return err
			}
			u, err := a.client.Unmount(ctx, mp)
			if err != nil {
				return err
			}
			return one(a, u, func() {
				if u.Detached {
					a.line("detached %s: it is busy, and goes when its last user does", u.Mountpoint)
					return
				}
				a.line("unmounted %s", u.Mountpoint)
			})
		}),
	}
}
