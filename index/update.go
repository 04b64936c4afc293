package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

// ErrClosed says that the index was closed.
var ErrClosed = errors.New("index is closed")

// ErrNotClosed says that an index could not be closed: what it holds in memory cannot be written.
var ErrNotClosed = errors.New("index cannot be closed")

// reserve is what must be free on the disk for a change: Badger's two memtable logs (32 MiB) grow
// into holes of their files, and one flush of a memtable (16 MiB) is under way.
const reserve = 64 << 20

const maxTries = 100

// update runs f in a transaction, again where it conflicts with another one. badger.ErrTxnTooBig is
// passed on.
func (x *Index) update(ctx context.Context, f func(tx *badger.Txn) error) error {
	x.closing.RLock()
	defer x.closing.RUnlock()
	for try := 1; ; try++ {
		if err := x.ready(ctx); err != nil {
			return err
		}
		if err := roomFor(x.dir); err != nil {
			return err
		}
		err := x.db.Update(f)
		if !errors.Is(err, badger.ErrConflict) || try == maxTries {
			return translate(err)
		}
		// A random wait lets one of the parties through.
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(time.Duration(min(try, 20)) * 200 * time.Microsecond)):
		}
	}
}

// view runs f on one snapshot.
func (x *Index) view(ctx context.Context, f func(tx *badger.Txn) error) error {
	x.closing.RLock()
	defer x.closing.RUnlock()
	if err := x.ready(ctx); err != nil {
		return err
	}
	return translate(x.db.View(f))
}

func (x *Index) ready(ctx context.Context) error {
	if x.closed {
		return ErrClosed
	}
	return ctx.Err()
}

func translate(err error) error {
	switch {
	case errors.Is(err, badger.ErrDBClosed), errors.Is(err, badger.ErrBlockedWrites):
		return ErrClosed
	case errors.Is(err, badger.ErrConflict):
		return fmt.Errorf("the index is too busy, %d tries failed: %w", maxTries, err)
	}
	return err
}

// missing turns a key that is not there into session.ErrNotFound.
func missing(err error, what, id string) error {
	if errors.Is(err, badger.ErrKeyNotFound) {
		return fmt.Errorf("%s %.300q: %w", what, id, session.ErrNotFound)
	}
	return err
}

func roomFor(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("index: look at the disk of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < reserve {
		return fmt.Errorf("index: the disk of %s has %d MiB left and %d are needed, free some: %w", dir, free>>20, reserve>>20, unix.ENOSPC)
	}
	return nil
}
