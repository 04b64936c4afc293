package main

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/ctl/server/servertest"
)

// BenchmarkRun compares a command run as a tool use with the command alone.
func BenchmarkRun(b *testing.B) {
	f := servertest.New()
	f.AddSession("s1", 0)
	path, stop, err := serve(f)
	require.NoError(b, err)
	defer stop()
	b.Setenv("VFSD_SOCKET", path)
	bin := b.TempDir() + "/vfsctl"
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(b, err, string(out))
	n := 0
	for name, argv := range map[string]func() []string{
		"alone":   func() []string { return []string{"true"} },
		"version": func() []string { return []string{bin, "version"} },
		"run": func() []string {
			n++
			return []string{bin, "run", "--tool-use", fmt.Sprint("t", n), "--", "true"}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a := argv()
				require.NoError(b, exec.Command(a[0], a[1:]...).Run())
			}
		})
	}
}
