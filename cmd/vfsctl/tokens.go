package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

// tokensCmd lists when it is given no verb.
func (a *app) tokensCmd() *cobra.Command {
	c := a.tokenListCmd()
	c.Use, c.Short = "tokens", "List and revoke download links"
	c.AddCommand(a.tokenListCmd(), a.tokenRevokeCmd())
	return c
}

func (a *app) tokenListCmd() *cobra.Command {
	var id, session string
	c := &cobra.Command{
		Use: "list", Short: "List issued links, without their secrets", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			all, err := a.client.Tokens(ctx, session, id)
			if err != nil {
				return err
			}
			return rows(a, all, "HASH ARTIFACT SESSION STATE DOWNLOADS EXPIRES CREATED", func(t ctl.Token) []any {
				return []any{t.ID, t.ArtifactID, t.SessionID, t.State, downloads(t), ago(t.ExpiresAt), ago(t.CreatedAt)}
			})
		}),
	}
	c.Flags().StringVar(&id, "artifact", "", "only those of this artifact")
	c.Flags().StringVar(&session, "session", "", "only those of this session (default all of yours)")
	return c
}

func downloads(t ctl.Token) string {
	if t.MaxDownloads == 0 {
		return fmt.Sprint(t.Downloads)
	}
	return fmt.Sprintf("%d of %d", t.Downloads, t.MaxDownloads)
}

// secretOf returns the secret of a link that was given whole.
func secretOf(link string) string {
	_, rest, isLink := strings.Cut(link, "/d/")
	if !isLink {
		return link
	}
	secret, _, _ := strings.Cut(rest, "/")
	return secret
}

func (a *app) tokenRevokeCmd() *cobra.Command {
	var r ctl.RevokeRequest
	c := &cobra.Command{
		Use: "revoke TOKEN|URL | --artifact ID | --all", Short: "Revoke links: one by its secret or URL, or many", Args: cobra.MaximumNArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			if len(args) == 1 {
				r.Token = secretOf(args[0])
			}
			n, err := a.client.RevokeTokens(ctx, r)
			if err != nil {
				return err
			}
			return one(a, ctl.Revoked{Revoked: n}, func() { a.line("revoked %d", n) })
		}),
	}
	c.Flags().StringVar(&r.ArtifactID, "artifact", "", "all links of this artifact")
	c.Flags().BoolVar(&r.All, "all", false, "all links, or all of --session")
	c.Flags().StringVar(&r.SessionID, "session", "", "with --all: only those of this session")
	return c
}
