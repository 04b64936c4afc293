package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

func (a *app) checkCmd() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Compare the index with itself and with the files; exit 1 where they disagree", Args: cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ []string) error {
			p, err := a.client.Check(ctx)
			if err != nil {
				return err
			}
			if err := a.showProblems(p); err != nil {
				return err
			}
			if len(p.Problems) == 0 {
				return nil
			}
			more := ""
			if p.Truncated {
				more = " and more"
			}
			return fmt.Errorf("index: %d disagreements%s: the lines above name them", len(p.Problems), more)
		}),
	}
}

func (a *app) showProblems(p ctl.Problems) error {
	if a.json {
		return jsonRows(a.out, p.Problems)
	}
	for _, v := range p.Problems {
		a.line("%s", v.Message)
	}
	if len(p.Problems) == 0 {
		a.line("no disagreement")
	}
	return nil
}
