package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) artifactTokenCmd() *cobra.Command {
	var ttl time.Duration
	var r ctl.TokenRequest
	var c *cobra.Command
	c = &cobra.Command{
		Use: "token ID", Short: "Make a download link and print it", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			if ttl < time.Second {
				return usagef("--ttl %s: give a second or more", ttl)
			}
			if c.Flags().Changed("max-downloads") && r.MaxDownloads < 1 {
				return usagef("--max-downloads %d: give 1 or more, or leave it out for no limit", r.MaxDownloads)
			}
			r.ArtifactID, r.TTLSeconds = args[0], int64(ttl.Seconds())
			t, err := a.client.IssueToken(ctx, r)
			if err != nil {
				return err
			}
			return one(a, t, func() { a.line("%s", t.URL) })
		}),
	}
	c.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the link works")
	c.Flags().IntVar(&r.MaxDownloads, "max-downloads", 0, "how many downloads it is good for (default no limit)")
	return c
}
