package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) toolCmd() *cobra.Command {
	return group("tool", "Begin, end and list tool uses",
		a.sessionFlag(a.toolBeginCmd()), a.sessionFlag(a.toolEndCmd()), a.sessionFlag(a.toolListCmd()))
}

func (a *app) toolBeginCmd() *cobra.Command {
	var r ctl.ToolUseRequest
	c := &cobra.Command{Use: "begin TOOL-USE", Short: "Begin a tool use", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&r.ExecutionID, "execution", os.Getenv(envExecution), "its execution (default "+envExecution+", else the current one)")
	c.Flags().IntVar(&r.PID, "pid", 0, "the process that it runs in, with all that descend from it")
	choiceFlag(c, &r.Artifact, "artifact", "true", "false", "whether the files that it writes are artifacts")
	c.RunE = a.verb(func(ctx context.Context, args []string) error {
		r.ID = args[0]
		t, err := a.beginToolUse(ctx, r)
		if err != nil {
			return err
		}
		return one(a, t, func() { a.line("%s", t.ID) })
	})
	return c
}

func (a *app) beginToolUse(ctx context.Context, r ctl.ToolUseRequest) (ctl.ToolUse, error) {
	return inSession(ctx, a, r.ExecutionID, func(s string) (ctl.ToolUse, error) {
		r.SessionID = s
		return a.client.BeginToolUse(ctx, r)
	})
}

func (a *app) toolEndCmd() *cobra.Command {
	return &cobra.Command{
		Use: "end TOOL-USE", Short: "End a tool use: what it wrote is final", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			s, err := a.sessionID(ctx, "")
			if err != nil {
				return err
			}
			t, err := a.client.EndToolUse(ctx, s, args[0])
			if err != nil {
				return err
			}
			return one(a, t, func() { a.line("%s", t.ID) })
		}),
	}
}

func (a *app) toolListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tool uses of a session", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			s, err := a.sessionID(ctx, "")
			if err != nil {
				return err
			}
			all, err := a.client.ToolUses(ctx, s)
			if err != nil {
				return err
			}
			return rows(a, all, "TOOL-USE EXECUTION ORIGIN PID BEGAN ENDED", func(t ctl.ToolUse) []any {
				pid := any("")
				if t.PID != 0 {
					pid = t.PID
				}
				return []any{t.ID, t.ExecutionID, t.Origin, pid, ago(t.BeganAt), agoOr(t.EndedAt, "open")}
			})
		}),
	}
}
