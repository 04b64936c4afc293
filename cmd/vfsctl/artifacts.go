package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"aimon.at/vfsd/ctl"
)

// artifactsCmd lists when it is given no verb. The two ways share one filter.
func (a *app) artifactsCmd() *cobra.Command {
	c := a.artifactListCmd()
	c.Use, c.Short = "artifacts", "List, show, fetch and share artifacts"
	list := a.artifactListCmd()
	c.AddCommand(list, a.artifactShowCmd(), a.artifactGetCmd(), a.sessionFlag(a.artifactAddCmd()), a.artifactRemoveCmd(),
		a.sessionFlag(a.artifactVersionsCmd()), a.artifactTokenCmd())
	return c
}

func (a *app) artifactListCmd() *cobra.Command {
	var f ctl.ArtifactFilter
	var quiet bool
	c := &cobra.Command{Use: "list", Short: "List artifacts", Args: cobra.NoArgs}
	c.Flags().StringVar(&f.ExecutionID, "execution", "", "only those of this execution and its forks")
	c.Flags().BoolVar(&f.NoForks, "no-forks", false, "leave out the forks of --execution")
	c.Flags().StringVar(&f.ToolUseID, "tool-use", "", "only those of this tool use")
	c.Flags().Uint64Var(&f.From, "from", 0, "a mark: only what became final after it")
	c.Flags().BoolVar(&f.All, "all", false, "replaced, deleted, lost and removed ones too")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the ids, one a line (without --json)")
	c.RunE = a.verb(func(ctx context.Context, _ []string) error {
		all, err := inSession(ctx, a, f.ExecutionID, func(s string) ([]ctl.Artifact, error) {
			f.SessionID = s
			return a.client.Artifacts(ctx, f)
		})
		if err != nil {
			return err
		}
		if quiet && !a.json {
			return a.showIDs(all)
		}
		return a.showArtifacts(all)
	})
	return a.sessionFlag(c)
}

func (a *app) showIDs(all []ctl.Artifact) error {
	for _, v := range all {
		if _, err := fmt.Fprintln(a.out, v.ID); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showArtifacts(all []ctl.Artifact) error {
	return rows(a, all, "ID PATH SIZE TYPE TOOL-USE ATTRIBUTION STATE CREATED", func(v ctl.Artifact) []any {
		return []any{v.ID, v.Path, size(v.Size), v.MimeType, who(v.ToolUseID, v.Candidates), v.Attribution, state(v), ago(v.CreatedAt)}
	})
}

// who shows the tool use, or those that it may have been.
func who(id string, candidates []string) string {
	if id == "" && len(candidates) > 0 {
		return strings.Join(candidates, " or ") + "?"
	}
	return id
}

func state(v ctl.Artifact) string {
	s := v.State
	if !v.Final {
		s += ", not final"
	}
	if v.Open {
		s += ", still open"
	}
	if v.Late {
		s += ", late"
	}
	return s
}

func (a *app) artifactShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show an artifact", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			v, err := a.client.Artifact(ctx, args[0])
			if err != nil {
				return err
			}
			return a.showArtifact(v)
		}),
	}
}

func (a *app) showArtifact(v ctl.Artifact) error {
	return one(a, v, func() {
		a.fields("id", v.ID, "path", v.Path, "size", size(v.Size), "type", v.MimeType, "state", state(v), "lost", v.LostReason,
			"tool use", who(v.ToolUseID, v.Candidates), "declared", v.DeclaredToolUseID, "attribution", v.Attribution, "source", v.Source,
			"execution", v.ExecutionID, "session", v.SessionID, "version", v.Version, "derived from", v.DerivedFrom,
			"created", ago(v.CreatedAt))
	})
}

func (a *app) artifactAddCmd() *cobra.Command {
	var toolUse string
	c := &cobra.Command{Use: "add PATH", Short: "Make a file of a mount an artifact", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&toolUse, "tool-use", "", "the tool use that it is said to be of")
	c.RunE = a.verb(func(ctx context.Context, args []string) error {
		p, s, err := a.pathInSession(ctx, args[0])
		if err != nil {
			return err
		}
		v, err := a.client.AddArtifact(ctx, s, p, toolUse)
		if err != nil {
			return err
		}
		return a.showArtifact(v)
	})
	return c
}

func (a *app) artifactRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Take an artifact out of the list; the file stays", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			v, err := a.client.RemoveArtifact(ctx, args[0])
			if err != nil {
				return err
			}
			return one(a, v, func() { a.line("removed %s (%s)", v.ID, v.Path) })
		}),
	}
}

func (a *app) artifactVersionsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "versions PATH", Short: "List what was final at a path, oldest first", Args: cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, args []string) error {
			p, s, err := a.pathInSession(ctx, args[0])
			if err != nil {
				return err
			}
			all, err := a.client.Versions(ctx, s, p)
			if err != nil {
				return err
			}
			return rows(a, all, "VERSION ID SIZE TOOL-USE ATTRIBUTION STATE CREATED", func(v ctl.Artifact) []any {
				return []any{v.Version, v.ID, size(v.Size), who(v.ToolUseID, v.Candidates), v.Attribution, state(v), ago(v.CreatedAt)}
			})
		}),
	}
}

func (a *app) pathInSession(ctx context.Context, arg string) (p, sessionID string, err error) {
	if p, err = a.inMount(ctx, arg); err != nil {
		return "", "", err
	}
	sessionID, err = a.sessionID(ctx, "")
	return p, sessionID, err
}
