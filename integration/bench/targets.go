package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// target is a directory to measure and the process that serves it, if any.
type target struct {
	name string
	dir  string
	cmd  *exec.Cmd // nil for native
}

const native = "native"

// startTargets mounts everything that is measured. Each target has a backing directory of its own
// on the same disk.
func startTargets(ctx context.Context, scratch, bin, other string) (targets []*target, missing []string, err error) {
	targets = append(targets, &target{name: native, dir: mkdir(scratch, native)})

	loopback := filepath.Join(bin, "loopback")
	build := exec.CommandContext(ctx, "go", "build", "-o", loopback, "github.com/hanwen/go-fuse/v2/example/loopback")
	if out, err := build.CombinedOutput(); err != nil {
		missing = append(missing, "go-fuse loopback: "+string(out))
	} else if t, err := mountPeer(scratch, "go-fuse loopback", func(source, mnt string) *exec.Cmd {
		return exec.Command(loopback, "-q", "-allow-other", mnt, source)
	}); err != nil {
		return targets, missing, err
	} else {
		targets = append(targets, t)
	}

	if _, err := exec.LookPath("bindfs"); err != nil {
		missing = append(missing, "bindfs: not installed")
	} else if t, err := mountPeer(scratch, "bindfs", func(source, mnt string) *exec.Cmd {
		return exec.Command("bindfs", "-f", source, mnt)
	}); err != nil {
		return targets, missing, err
	} else {
		targets = append(targets, t)
	}

	for _, flags := range [][]string{nil, {"--exclusive"}} {
		t, err := mountVFSD(scratch, filepath.Join(bin, "vfsd"), strings.Join(append([]string{"vfsd"}, flags...), " "), flags)
		if err != nil {
			return targets, missing, err
		}
		targets = append(targets, t)
	}
	if other != "" {
		t, err := mountVFSD(scratch, other, "other vfsd", nil)
		if err != nil {
			return targets, missing, err
		}
		targets = append(targets, t)
	}
	return targets, missing, nil
}

func mkdir(scratch, name string) string {
	dir := filepath.Join(scratch, strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "--", ""))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		panic(err)
	}
	return dir
}

func mountPeer(scratch, name string, command func(source, mnt string) *exec.Cmd) (*target, error) {
	t := &target{name: name, dir: mkdir(scratch, name)}
	t.cmd = command(mkdir(scratch, name+"-source"), t.dir)
	t.cmd.Stderr = os.Stderr
	var before, now unix.Stat_t
	if err := unix.Stat(t.dir, &before); err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if err := unix.Stat(t.dir, &now); err == nil && now.Dev != before.Dev {
			return t, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stopTargets([]*target{t})
	return nil, fmt.Errorf("%s did not mount", name)
}

func mountVFSD(scratch, binary, name string, flags []string) (*target, error) {
	t := &target{name: name, dir: mkdir(scratch, name)}
	args := []string{"mount", mkdir(scratch, name+"-source"), t.dir, "--http", "off",
		"--state-dir", mkdir(scratch, name+"-state"), "--socket", filepath.Join(mkdir(scratch, name+"-run"), "s")}
	t.cmd = exec.Command(binary, append(args, flags...)...)
	t.cmd.Stderr = os.Stderr
	stdout, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); !strings.HasPrefix(line, "ready ") {
		stopTargets([]*target{t})
		return nil, fmt.Errorf("%s did not mount", name)
	}
	return t, nil
}

func stopTargets(targets []*target) {
	for _, t := range targets {
		if t.cmd == nil {
			continue
		}
		if err := unix.Unmount(t.dir, 0); err != nil {
			_ = unix.Unmount(t.dir, unix.MNT_DETACH)
		}
		_ = t.cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan struct{})
		go func() { _ = t.cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = t.cmd.Process.Kill()
			<-ended
		}
	}
}
