// Command vfsd is the daemon: it mounts working trees, records which tool use wrote which file,
// and answers vfsctl and the people who follow download links.
//
// This package is the only one that knows flags, environment and configuration file, and the only
// place where all the others meet. What happens is in run; main is a shell around it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"aimon.at/vfsd/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	limitMemory()
	err := newCommand(os.Stdout, os.Stderr).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vfsd: "+err.Error())
	}
	stop()
	os.Exit(exitStatus(err))
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

// exitStatus is the exit status of the daemon (INTERFACE, "vfsd"): 0 done, 1 refused or failed,
// 2 usage, 6 conflict.
func exitStatus(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.Is(err, session.ErrConflict):
		return 6
	}
	return 1
}
