package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func unpack(m *measurement, dir string) error { return m.sh(dir, "tar xf "+m.tarball) }

// script is a workload that is a shell command.
func script(s string) func(*measurement, string) error {
	return func(m *measurement, dir string) error { return m.sh(dir, s) }
}

const gitCommit = "git -c init.defaultBranch=main init -q && git add -A && git -c user.name=n -c user.email=e@e commit -qm m"

var workloads = []workload{
	{name: "untar 5,000 small files", run: unpack},
	{name: "git init, add, commit", setup: unpack, run: script(gitCommit)},
	{name: "git status", setup: func(m *measurement, dir string) error {
		if err := unpack(m, dir); err != nil {
			return err
		}
		return m.sh(dir, gitCommit)
	}, run: script("git status >/dev/null"), warm: true},
	{name: "find, warm", setup: unpack, run: script("find . >/dev/null"), warm: true},
	{name: "du, warm", setup: unpack, run: script("du -s . >/dev/null"), warm: true},
	{name: "ls -lR, warm", setup: unpack, run: script("ls -lR >/dev/null"), warm: true},
	{name: "grep -r, warm", setup: unpack, run: script("grep -r 'no such text' . >/dev/null || true"), warm: true},
	{name: "create 5,000 x 1 KiB", run: create},
	{name: "rm -rf of them", setup: create, run: func(_ *measurement, dir string) error {
		return eachEntry(dir, os.RemoveAll)
	}},
	{name: "sequential write 1 GiB", run: sequentialWrite},
	{name: "sequential read 1 GiB", setup: sequentialWrite, run: sequentialRead, warm: true},
	{name: "random 4 KiB writes", setup: sequentialWrite, run: randomWrites},
	{name: "random 4 KiB reads", setup: sequentialWrite, run: randomReads, warm: true},
	{name: "sqlite, 200 transactions", run: script(`sqlite3 t.db 'create table t(a)' && for i in $(seq 200); do echo 'insert into t values(1);'; done | sqlite3 t.db`)},
	{name: "1,000 x (write, fsync, rename)", run: saveFiles},
	{name: "make -j2 of 100 objects", setup: objects, run: script("make -s -j2")},
}

func create(m *measurement, dir string) error {
	data := make([]byte, 1024)
	for i := range m.count(5000) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d", i)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func eachEntry(dir string, f func(string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := f(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

const chunk = 1 << 20

func sequentialWrite(m *measurement, dir string) error {
	f, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, chunk)
	for range m.count(1024) {
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return f.Sync()
}

func sequentialRead(m *measurement, dir string) error {
	f, err := os.Open(filepath.Join(dir, "big"))
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, chunk)
	for range m.count(1024) {
		if _, err := f.Read(data); err != nil {
			return err
		}
	}
	return nil
}

func randomWrites(m *measurement, dir string) error {
	return randomly(m, dir, os.O_WRONLY, func(f *os.File, at int64, block []byte) error {
		_, err := f.WriteAt(block, at)
		return err
	})
}

func randomReads(m *measurement, dir string) error {
	return randomly(m, dir, os.O_RDONLY, func(f *os.File, at int64, block []byte) error {
		_, err := f.ReadAt(block, at)
		return err
	})
}

func randomly(m *measurement, dir string, flags int, do func(*os.File, int64, []byte) error) error {
	f, err := os.OpenFile(filepath.Join(dir, "big"), flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const block = 4096
	blocks := int64(m.count(1024)) * chunk / block
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, block)
	for range m.count(100_000) {
		if err := do(f, r.Int64N(blocks)*block, data); err != nil {
			return err
		}
	}
	return nil
}

func saveFiles(m *measurement, dir string) error {
	for i := range m.count(1000) {
		tmp := filepath.Join(dir, "tmp")
		f, err := os.Create(tmp)
		if err != nil {
			return err
		}
		_, err = f.WriteString("content\n")
		if err == nil {
			err = unix.Fdatasync(int(f.Fd()))
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = os.Rename(tmp, filepath.Join(dir, fmt.Sprintf("f%d", i%10)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// objects makes a project of 100 small C files.
func objects(m *measurement, dir string) error {
	n := m.count(100)
	rules := "all:"
	for i := range n {
		rules += fmt.Sprintf(" o%d.o", i)
		source := fmt.Sprintf("#include <stddef.h>\nint f%d(int x) { return x + %d; }\n", i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("o%d.c", i)), []byte(source), fs.FileMode(0o644)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "Makefile"), []byte(rules+"\n"), 0o644)
}
