package main

import (
	"context"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) sessionCmd() *cobra.Command {
	return group("session", "List and delete sessions", a.sessionListCmd(), a.sessionDeleteCmd())
}

func (a *app) sessionListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List sessions", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			all, err := a.client.Sessions(ctx)
			if err != nil {
				return err
			}
			return rows(a, all, "SESSION OWNER ARTIFACTS SOURCE CREATED", func(s ctl.Session) []any {
				return []any{s.ID, s.Owner, onOff(s.ArtifactsDefault), s.Source, ago(s.CreatedAt)}
			})
		}),
	}
}

func (a *app) sessionDeleteCmd() *cobra.Command {
	return &cobra.Command{
		Use: "delete SESSION", Short: "Delete a session with its records and tokens; files stay", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			if err := a.client.DeleteSession(ctx, args[0]); err != nil {
				return err
			}
			deleted := struct {
				ID string `json:"id"`
			}{args[0]}
			return one(a, deleted, func() { a.line("deleted session %s", args[0]) })
		}),
	}
}
