package index

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// fromScheme1 adds what scheme 2 has more: the rows of open executions and of artifacts by directory. A
// version 1 may have been opened by both an older and a newer vfsd, so those that are there are made
// anew. Where it is cut short the next start does it again.
func (x *Index) fromScheme1() error {
	x.log.Info("the index is brought to its new scheme", "from", 1, "to", 2)
	if err := x.db.DropPrefix([]byte{kindExecutionOpen}, []byte{kindBelow}); err != nil {
		return fmt.Errorf("index: bring to scheme 2: %w", err)
	}
	batch := x.db.NewWriteBatch()
	defer batch.Cancel()
	err := x.db.View(func(tx *badger.Txn) error {
		for _, kind := range []byte{kindExecution, kindEntry} {
			if err := scan(tx, []byte{kind}, nil, func(k []byte, _ *badger.Item) (bool, error) {
				return true, x.addNew(tx, batch, k)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = batch.Flush()
	}
	if err == nil {
		err = x.db.Update(func(tx *badger.Txn) error { return set(tx, schemeKey(), 2) })
	}
	if err == nil {
		err = x.db.Sync()
	}
	if err != nil {
		return fmt.Errorf("index: bring to scheme 2: %w", err)
	}
	return nil
}

// addNew adds the new secondary rows of the row at k. A damaged row is left to Check.
func (x *Index) addNew(tx *badger.Txn, batch *badger.WriteBatch, k key) error {
	r, err := load(tx, k)
	if errors.Is(err, ErrCorrupt) {
		x.log.Warn("a damaged row is left as it is", "row", describe(k), "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range r.secondary() {
		if s[0] == kindExecutionOpen || s[0] == kindBelow {
			if err := batch.Set(s, k); err != nil {
				return err
			}
		}
	}
	return nil
}
