// Command vfsctl is the control program of vfsd: one verb a file, each of them one or two calls of
// ctl.Client and a way to show the answer. See docs/cli.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"aimon.at/vfsd/ctl"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run carries out one command line and returns its exit status.
func run(args []string, out, errs io.Writer) int {
	a := &app{out: out, errs: errs}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	var st exitStatus
	switch {
	case err == nil:
		return ctl.ExitDone
	case errors.As(err, &st):
		return int(st)
	}
	a.complain(err)
	var f failure
	if errors.As(err, &f) {
		return ctl.ExitStatus(f.error)
	}
	return ctl.ExitUsage
}

// complain says what went wrong in one line.
func (a *app) complain(err error) {
	// cobra sets its suggestions apart by empty lines.
	fmt.Fprintln(a.errs, "vfsctl:", printable(strings.Join(strings.Fields(err.Error()), " ")))
}

// failure marks an error of a verb that was understood; every other one is a matter of usage.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// exitStatus ends the program with that status and says nothing more.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
