package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/cmd/vfsctl/child"
	"aimon.at/vfsd/ctl"
)

// statusOwnFailure is run's status where it failed itself, as that of env(1) and nohup(1).
const statusOwnFailure = exitStatus(125)

// The waits for the daemon. While a tool use begins, signals are held for its command and end nothing. The end of a tool use waits for its files to settle.
const (
	beginTimeout = 10 * time.Second
	endTimeout   = 60 * time.Second
)

func (a *app) runCmd() *cobra.Command {
	var r ctl.ToolUseRequest
	c := &cobra.Command{
		Use:   "run --tool-use ID [flags] -- COMMAND [ARG…]",
		Short: "Run a command as a tool use",
		Long: "Run a command as a tool use: every file that it and all that descend from it write in a mount is its own.\n" +
			"The command has this program's descriptors, terminal, signals and limits, and its exit status is passed on:\n" +
			"125 where this program failed and the command was not run, 126 not executable, 127 not found, 128+n ended by signal n.",
		// Usage is a failure of this program too: no status of it may look like the command's.
		RunE: func(_ *cobra.Command, args []string) error { return a.run(r, args) },
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&r.ID, "tool-use", "", "the id that the model gave the tool call")
	c.Flags().StringVar(&r.ExecutionID, "execution", os.Getenv(envExecution), "its execution (default "+envExecution+", else the current one)")
	choiceFlag(c, &r.Artifact, "artifact", "true", "false", "whether the files that it writes are artifacts")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return a.notRun(err) })
	return a.sessionFlag(c)
}

func (a *app) run(r ctl.ToolUseRequest, args []string) error {
	if r.ID == "" || len(args) == 0 {
		return a.notRun(errors.New("run needs --tool-use ID and a command: vfsctl run --tool-use ID -- COMMAND"))
	}
	cmd, err := child.Find(args)
	if err != nil {
		return a.notRun(err)
	}
	cmd.Hold()
	t, err := a.begin(r)
	if err != nil {
		cmd.Release()
		return a.notRun(fmt.Errorf("%w: the command was not run", err))
	}
	status, err := cmd.Run(environment(os.Environ(), t))
	a.end(t)
	if err != nil {
		return a.notRun(err)
	}
	return exitStatus(status)
}

// notRun says why there was no command and gives the status for it.
func (a *app) notRun(err error) error {
	a.complain(err)
	var n *child.NotRun
	if errors.As(err, &n) {
		return exitStatus(n.Status)
	}
	return statusOwnFailure
}

func (a *app) begin(r ctl.ToolUseRequest) (ctl.ToolUse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), beginTimeout)
	defer cancel()
	r.Self = true
	return a.beginToolUse(ctx, r)
}

// end only warns: the command has had its effect, and its status is what the caller asked for.
func (a *app) end(t ctl.ToolUse) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if _, err := a.client.EndToolUse(ctx, t.SessionID, t.ID); err != nil {
		a.complain(fmt.Errorf("warning: the tool use was not ended: %w", err))
	}
}

// environment is the caller's with what names the tool use.
func environment(env []string, t ctl.ToolUse) []string {
	set := map[string]string{envToolUse: t.ID, envExecution: t.ExecutionID, envSession: t.SessionID}
	if t.Artifact != nil {
		set[envArtifact] = strconv.FormatBool(*t.Artifact)
	}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if _, ok := set[name]; !ok {
			out = append(out, kv)
		}
	}
	for _, name := range []string{envToolUse, envExecution, envSession, envArtifact} {
		if v, ok := set[name]; ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}
