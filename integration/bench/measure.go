package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// measurement is one run of the program.
type measurement struct {
	ctx     context.Context
	scratch string
	targets []*target
	rounds  int
	scale   float64
	tarball string
	results []result
}

// workload is something people do on a file system. setup is not timed; both run with the
// directory that is measured as working directory.
type workload struct {
	name  string
	setup func(m *measurement, dir string) error
	run   func(m *measurement, dir string) error
	warm  bool // run once untimed first
	each  int  // how many equal pieces it has, 0 where they are not equal
}

// count is n at the chosen scale.
func (m *measurement) count(n int) int { return max(1, int(float64(n)*m.scale)) }

// prepare makes the archive that several workloads unpack: small files in 50 directories.
func (m *measurement) prepare() error {
	m.tarball = filepath.Join(m.scratch, "files.tar")
	dir := mkdir(m.scratch, "tarball-source")
	for i := range m.count(5000) {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", i%50))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		line := fmt.Sprintf("line of file %d\n", i)
		var text []byte
		for len(text) < 1024 {
			text = append(text, line...)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%05d.txt", i)), text, 0o644); err != nil {
			return err
		}
	}
	return m.sh(dir, "tar cf "+m.tarball+" .")
}

// sh runs a shell command in dir.
func (m *measurement) sh(dir, script string) error {
	cmd := exec.CommandContext(m.ctx, "sh", "-euc", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

// measure runs w on every target in turn, rounds times over, so that a slow minute of the machine
// meets them all.
func (m *measurement) measure(w workload) error {
	times := make([][]float64, len(m.targets))
	for range m.rounds {
		for i, t := range m.targets {
			seconds, err := m.once(w, t)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", w.name, t.name, err)
			}
			times[i] = append(times[i], seconds)
		}
	}
	base := median(times[0])
	for i, t := range m.targets {
		mid := median(times[i])
		r := result{
			Workload: w.name, Target: t.name, All: times[i],
			Median: time.Duration(mid * float64(time.Second)), Ratio: mid / base,
		}
		if w.each > 0 {
			r.Each = mid * 1e6 / float64(m.count(w.each))
		}
		m.results = append(m.results, r)
	}
	return nil
}

func (m *measurement) once(w workload, t *target) (float64, error) {
	dir := filepath.Join(t.dir, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if w.setup != nil {
		if err := w.setup(m, dir); err != nil {
			return 0, err
		}
	}
	if w.warm {
		if err := w.run(m, dir); err != nil {
			return 0, err
		}
	}
	// What was left to write by others must not be paid by this one.
	unix.Sync()
	start := time.Now()
	err := w.run(m, dir)
	return time.Since(start).Seconds(), err
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func (m *measurement) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprint(w, "workload")
	for _, t := range m.targets {
		fmt.Fprintf(w, "\t%s", t.name)
	}
	fmt.Fprintln(w)
	for i := 0; i < len(m.results); i += len(m.targets) {
		row := m.results[i : i+len(m.targets)]
		fmt.Fprint(w, row[0].Workload)
		for i, r := range row {
			fmt.Fprintf(w, "\t%s", r.show(i == 0))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "native in seconds, the others as a ratio to it; rows of one request in microseconds each; medians of %d\n", m.rounds)
}

func (r result) show(native bool) string {
	switch {
	case r.Each > 0:
		return fmt.Sprintf("%.1f µs", r.Each)
	case native:
		return fmt.Sprintf("%.3f s", r.Median.Seconds())
	}
	return fmt.Sprintf("%.2f", r.Ratio)
}
