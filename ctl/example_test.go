package ctl_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// toolCall is what a model asked for.
type toolCall struct {
	id   string // as the model gave it
	argv []string
}

// A turn of an agent: begin the execution, run the tools, mark after each iteration, end. It needs a
// live mount of the session at /srv/agent/mnt.
func ExampleClient() {
	iterations := [][]toolCall{
		{{"call_1", []string{"sh", "-c", "echo a,b > sales.csv"}}},
		{{"call_2", []string{"sh", "-c", "sort sales.csv > sorted.csv"}}},
	}
	ctx, client := context.Background(), &ctl.Client{}
	e, err := client.BeginExecution(ctx, ctl.ExecutionRequest{SessionID: "conversation-17"})
	if err != nil {
		log.Fatal(err)
	}
	status := session.Completed
	if err := turn(ctx, client, e, iterations); err != nil {
		log.Print(err)
		status = session.Error
	}
	// The end is asked for whatever happened: the artifacts of a failed turn are kept too.
	report, err := client.EndExecution(context.WithoutCancel(ctx), e.SessionID, e.ID, status)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range report.Artifacts {
		link, err := client.IssueToken(ctx, ctl.TokenRequest{ArtifactID: a.ID, TTLSeconds: 3600})
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(a.FileName, a.Size, link.URL)
	}
}

func turn(ctx context.Context, client *ctl.Client, e ctl.Execution, iterations [][]toolCall) error {
	var mark uint64
	for _, calls := range iterations {
		for _, call := range calls {
			if err := runTool(ctx, client, e, call); err != nil {
				return err
			}
		}
		next, err := client.MarkExecution(ctx, e.SessionID, e.ID)
		if err != nil {
			return err
		}
		slice, err := client.Artifacts(ctx, ctl.ArtifactFilter{SessionID: e.SessionID, ExecutionID: e.ID, From: mark})
		if err != nil {
			return err
		}
		for _, a := range slice {
			fmt.Println("made in this iteration:", a.Path, "by", a.ToolUseID, a.Attribution)
		}
		mark = next.Mark
	}
	return nil
}

// runTool names the tool use in the environment of the command, so that calls may run side by side.
func runTool(ctx context.Context, client *ctl.Client, e ctl.Execution, call toolCall) error {
	use, err := client.BeginToolUse(ctx, ctl.ToolUseRequest{SessionID: e.SessionID, ExecutionID: e.ID, ID: call.id})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, call.argv[0], call.argv[1:]...)
	cmd.Dir = "/srv/agent/mnt"
	cmd.Env = append(os.Environ(), "VFSD_TOOL_USE_ID="+use.ID, "VFSD_EXECUTION_ID="+e.ID)
	if err := cmd.Run(); err != nil {
		log.Printf("tool use %s: %v", use.ID, err) // for the model to read; the turn goes on
	}
	_, err = client.EndToolUse(context.WithoutCancel(ctx), e.SessionID, use.ID)
	return err
}
