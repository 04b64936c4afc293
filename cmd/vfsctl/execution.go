package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (a *app) executionCmd() *cobra.Command {
	return group("execution", "Begin, mark, end and show executions",
		a.sessionFlag(a.executionBeginCmd()), a.sessionFlag(a.executionMarkCmd()), a.sessionFlag(a.executionEndCmd()),
		a.sessionFlag(a.executionListCmd()), a.sessionFlag(a.executionShowCmd()))
}

func (a *app) executionBeginCmd() *cobra.Command {
	var r ctl.ExecutionRequest
	c := &cobra.Command{Use: "begin", Short: "Begin an execution and print its id", Args: cobra.NoArgs}
	c.Flags().StringVar(&r.ID, "id", "", "its id (default: a new one)")
	c.Flags().StringVar(&r.ParentID, "parent", "", "the execution that it is a fork of")
	choiceFlag(c, &r.Artifacts, "artifacts", "on", "off", "whether undeclared files are artifacts (default the session's)")
	c.RunE = a.verb(func(ctx context.Context, _ []string) error {
		e, err := inSession(ctx, a, r.ParentID, func(s string) (ctl.Execution, error) {
			r.SessionID = s
			return a.client.BeginExecution(ctx, r)
		})
		if err != nil {
			return err
		}
		return one(a, e, func() { a.line("%s", e.ID) })
	})
	return c
}

func (a *app) executionMarkCmd() *cobra.Command {
	return &cobra.Command{
		Use: "mark EXECUTION", Short: "End the iteration and print its mark", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			m, err := inSession(ctx, a, args[0], func(s string) (ctl.Mark, error) {
				return a.client.MarkExecution(ctx, s, args[0])
			})
			if err != nil {
				return err
			}
			return one(a, m, func() { a.line("%d", m.Mark) })
		}),
	}
}

func (a *app) executionEndCmd() *cobra.Command {
	var status string
	c := &cobra.Command{
		Use: "end EXECUTION --status STATUS", Short: "End an execution and print its artifacts", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			e, err := inSession(ctx, a, args[0], func(s string) (ctl.ExecutionReport, error) {
				return a.client.EndExecution(ctx, s, args[0], session.Status(status))
			})
			if err != nil {
				return err
			}
			return one(a, e, func() { a.showExecution(e) })
		}),
	}
	c.Flags().StringVar(&status, "status", "", "COMPLETED, TRUNCATED, ERROR, INTERRUPTED, SUSPENDED, MAX_ITERATIONS or COMMAND")
	_ = c.MarkFlagRequired("status")
	return c
}

func (a *app) executionListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the executions of a session", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			s, err := a.sessionID(ctx, "")
			if err != nil {
				return err
			}
			all, err := a.client.Executions(ctx, s)
			if err != nil {
				return err
			}
			return rows(a, all, "EXECUTION STATUS PARENT IMPLICIT ARTIFACTS BEGAN ENDED", func(e ctl.Execution) []any {
				return []any{e.ID, e.Status, e.ParentID, yes(e.Implicit), onOff(e.ArtifactsDefault), ago(e.BeganAt), agoOr(e.EndedAt, "")}
			})
		}),
	}
}

func (a *app) executionShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show EXECUTION", Short: "Show an execution with its artifacts", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			e, err := inSession(ctx, a, args[0], func(s string) (ctl.ExecutionReport, error) {
				return a.client.Execution(ctx, s, args[0])
			})
			if err != nil {
				return err
			}
			return one(a, e, func() { a.showExecution(e) })
		}),
	}
}

func (a *app) showExecution(e ctl.ExecutionReport) {
	a.fields("execution", e.ID, "session", e.SessionID, "parent", e.ParentID, "status", e.Status,
		"artifacts", fmt.Sprintf("%d (%s by default)", len(e.Artifacts), onOff(e.ArtifactsDefault)),
		"began", ago(e.BeganAt), "ended", agoOr(e.EndedAt, ""))
	if len(e.Artifacts) > 0 {
		fmt.Fprintln(a.out)
		_ = a.showArtifacts(e.Artifacts)
	}
}
