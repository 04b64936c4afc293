package main

import (
	"context"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) writesCmd() *cobra.Command {
	var toolUse string
	c := &cobra.Command{
		Use: "writes", Short: "List every recorded write and what decided over it", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			s, err := a.sessionID(ctx, "")
			if err != nil {
				return err
			}
			all, err := a.client.Writes(ctx, s, toolUse)
			if err != nil {
				return err
			}
			return rows(a, all, "PATH SIZE TOOL-USE ATTRIBUTION LATE ARTIFACT REASON EXECUTION AT", func(w ctl.Write) []any {
				return []any{w.Path, size(w.Size), who(w.ToolUseID, w.Candidates), w.Attribution, yes(w.Late), yes(w.Artifact), w.Reason, w.ExecutionID, ago(w.At)}
			})
		}),
	}
	c.Flags().StringVar(&toolUse, "tool-use", "", "only those of this tool use")
	return a.sessionFlag(c)
}
