package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// preflight looks for what Badger does not tell in a form that a caller could act on: its errors
// hide the errno, a table without its end panics on one of its goroutines, and where the list of
// tables is missing it begins a new one and deletes the tables.
func preflight(dir string, o badger.Options) error {
	if err := free(dir); err != nil {
		return err
	}
	if err := writable(dir); err != nil {
		return err
	}
	if err := roomFor(dir); err != nil {
		return err
	}
	return tablesEnd(dir, o)
}

// free reports whether another process has Badger's lock on dir. Badger takes it again a moment later.
func free(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: another vfsd uses the index in %s: stop it, or choose another --state-dir", session.ErrConflict, dir)
	} else if err != nil {
		return fmt.Errorf("index: lock %s: %w", dir, err)
	}
	return nil
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return fmt.Errorf("index: %s cannot be written, choose another --state-dir: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// tablesEnd checks that the list of tables is there and that each listed one has a whole footer.
func tablesEnd(dir string, o badger.Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(dir, fmt.Errorf("%v", p))
		}
	}()
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		if left, _ := filepath.Glob(filepath.Join(dir, "*.sst")); len(left) > 0 {
			return damaged(dir, fmt.Errorf("there are tables and no %s", badger.ManifestFilename))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, o.ExternalMagicVersion, o)
	if err != nil {
		return damaged(dir, err)
	}
	for id := range manifest.Tables {
		if err := footer(table.NewFilename(id, dir)); err != nil {
			return damaged(dir, err)
		}
	}
	return nil
}

// footer checks that the lengths at the end of a table lie inside of it. The end is: index, its
// length in 4 bytes, its checksum, the checksum's length in 4 bytes. Badger compares the checksum.
func footer(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at := info.Size()
	for range 2 {
		var length [4]byte
		at -= 4
		if _, err := f.ReadAt(length[:], at); err != nil {
			return fmt.Errorf("%s ends early: %w", name, err)
		}
		n := int64(binary.BigEndian.Uint32(length[:]))
		if n == 0 { // the tail was allocated and never written: a power cut
			return fmt.Errorf("%s ends in zeros", name)
		}
		at -= n
	}
	if at < 0 {
		return fmt.Errorf("%s ends early", name)
	}
	return nil
}

func damaged(dir string, err error) error {
	return fmt.Errorf("%w: %s cannot be opened: put back a copy, or move it away to begin with an empty one: %w", ErrCorrupt, dir, err)
}
