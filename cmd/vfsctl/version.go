package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: a.verb(func(context.Context, []string) error {
			v := struct {
				Version string `json:"version"`
			}{version}
			return one(a, v, func() { a.line("vfsctl %s", version) })
		}),
	}
}
