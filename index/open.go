package index

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

var (
	_ session.Store       = (*Index)(nil)
	_ artifact.Store      = (*Index)(nil)
	_ artifact.TokenStore = (*Index)(nil)
)

// Index is an open index. It is safe for concurrent use.
type Index struct {
	dir string
	db  *badger.DB
	log *slog.Logger

	// closing is held for reading by every operation and for writing by Close; it guards closed.
	closing sync.RWMutex
	closed  bool
	stop    chan struct{}
	idle    sync.WaitGroup
}

// Open opens the index in dir and makes it where it is missing. Another process that has it open is
// session.ErrConflict, an index that cannot be read is ErrCorrupt, and one of another scheme is
// session.ErrConflict. The caller closes it.
func Open(dir string, log *slog.Logger) (*Index, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("index: make its directory: %w", err)
	}
	o := settings(dir, log)
	if err := preflight(dir, o); err != nil {
		return nil, err
	}
	db, err := openBadger(o)
	if err != nil {
		return nil, damaged(dir, err)
	}
	x := &Index{dir: dir, db: db, log: log, stop: make(chan struct{})}
	if err := x.checkScheme(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	x.idle.Go(x.collectGarbage)
	return x, nil
}

// settings keeps Badger small: about 40 MiB of memory where its defaults take several hundred. All
// values stay in the tree, so the value log is empty but for entries with very many long names.
func settings(dir string, log *slog.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(logger{log}).
		WithMetricsEnabled(false).
		WithSyncWrites(false).
		WithMemTableSize(16 << 20).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithNumGoroutines(2).
		WithCompression(options.Snappy).
		WithBlockCacheSize(8 << 20).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithValueLogFileSize(64 << 20)
}

// openBadger turns a panic into an error: Badger asserts where a damaged file contradicts itself.
func openBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return badger.Open(o)
}

// closeWithin bounds Close: Badger tries to write its last table again and again, without end where its
// directory is gone or the disk stays full. What that would have held is in its log, if that is there.
const closeWithin = 10 * time.Second

// Close makes everything durable and closes the index. It waits for operations that are under way, and
// ends with ErrNotClosed where the disk takes no more: then only the end of the process frees what it
// holds.
func (x *Index) Close() error {
	x.closing.Lock()
	defer x.closing.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	close(x.stop)
	x.idle.Wait()
	return x.closeDB(closeWithin)
}

func (x *Index) closeDB(within time.Duration) error {
	closed := make(chan error, 1)
	go func() { closed <- x.db.Close() }()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("index: close: %w", err)
		}
		return nil
	case <-late.C:
		return fmt.Errorf("%w: %s cannot be written", ErrNotClosed, x.dir)
	}
}

// Sync makes everything written so far survive a power cut.
func (x *Index) Sync() error {
	x.closing.RLock()
	defer x.closing.RUnlock()
	if x.closed {
		return ErrClosed
	}
	if err := x.db.Sync(); err != nil {
		return fmt.Errorf("index: sync: %w", err)
	}
	return nil
}

const garbageInterval = 10 * time.Minute

func (x *Index) collectGarbage() {
	tick := time.NewTicker(garbageInterval)
	defer tick.Stop()
	for {
		select {
		case <-x.stop:
			return
		case <-tick.C:
			for x.db.RunValueLogGC(0.5) == nil { // one file a call, until none is worth it
			}
		}
	}
}
