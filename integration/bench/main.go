// Command bench compares the mount with the bare disk and with its peers.
//
// Every workload runs on every target in turn, several rounds over, and is reported as the median
// of its times and as a ratio to the native time of the same run: machines are noisy, and a time
// alone says nothing. Targets that are not installed are left out and named.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		jsonFile = flag.String("json", "", "also write the results to this `file`")
		rounds   = flag.Int("rounds", 3, "how often every workload runs on every target")
		only     = flag.String("only", "", "run only workloads whose name matches this regular `expression`")
		scale    = flag.Float64("scale", 1, "size of the workloads")
		dir      = flag.String("dir", "", "scratch `directory` on the disk to measure (default: the system's)")
		other    = flag.String("other", "", "also measure this `binary`, another build of vfsd")
		bin      = flag.String("bin", "bin", "`directory` of vfsd and of what is built for the run")
	)
	flag.Parse()
	if *rounds < 1 || *scale <= 0 {
		return errors.New("-rounds and -scale must be positive")
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(*dir, "vfsd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	binaries, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	targets, missing, err := startTargets(ctx, scratch, binaries, *other)
	defer stopTargets(targets)
	if err != nil {
		return err
	}
	m := &measurement{ctx: ctx, scratch: scratch, targets: targets, rounds: *rounds, scale: *scale}
	if err := m.prepare(); err != nil {
		return err
	}
	for _, w := range append(micros, workloads...) {
		if !wanted.MatchString(w.name) {
			continue
		}
		if err := m.measure(w); err != nil {
			return err
		}
	}
	m.print(os.Stdout)
	for _, name := range missing {
		fmt.Printf("left out: %s\n", name)
	}
	if *jsonFile == "" {
		return nil
	}
	raw, err := json.MarshalIndent(m.results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(raw, '\n'), 0o644)
}

// result is what one workload took on one target.
type result struct {
	Workload string        `json:"workload"`
	Target   string        `json:"target"`
	Median   time.Duration `json:"medianNanos"`
	Ratio    float64       `json:"ratio"` // to native
	All      []float64     `json:"seconds"`
	Each     float64       `json:"microseconds,omitempty"` // a piece, where the pieces are all the same
}
