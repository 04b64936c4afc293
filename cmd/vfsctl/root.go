package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// app is what all verbs share.
type app struct {
	out, errs io.Writer
	client    ctl.Client
	json      bool
	session   string // as given by --session or VFSD_SESSION
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:           "vfsctl",
		Short:         "Control vfsd: sessions, executions, tool uses, and the artifacts they made",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.SetOut(a.out)
	c.SetErr(a.errs)
	c.PersistentFlags().StringVar(&a.client.Socket, "socket", "", "the daemon's control socket (default "+ctl.EnvSocket+", else the user's own)")
	c.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	c.AddCommand(a.statusCmd(), a.mountCmd(), a.unmountCmd(), a.mountsCmd(), a.sessionCmd(), a.executionCmd(),
		a.runCmd(), a.toolCmd(), a.artifactsCmd(), a.tokensCmd(), a.writesCmd(), a.checkCmd(), a.versionCmd())
	return c
}

// verb is what a command runs: interrupted it gives up, and its error is a failure, not a mistake in
// the command line.
func (a *app) verb(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if err := f(ctx, args); err != nil {
			return failure{err}
		}
		return nil
	}
}

// group is a noun whose verbs are its subcommands.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return fmt.Errorf("%s: say what to do: %s", c.CommandPath(), strings.Join(names, ", "))
	}}
	c.AddCommand(verbs...)
	return c
}

// usagef is a mistake in the command line that only the verb sees.
func usagef(format string, args ...any) error {
	return fmt.Errorf("%w usage: %s", session.ErrInvalid, fmt.Sprintf(format, args...))
}
