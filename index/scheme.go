package index

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/session"
)

// scheme is the version of the key scheme that this code reads and writes.
const scheme = 2

func schemeKey() key { return newKey(kindScheme).text("scheme") }

// checkScheme refuses an index of a scheme that this code cannot bring to its own, without changing it,
// and marks an empty one.
func (x *Index) checkScheme() error {
	var found uint64
	fresh := false
	err := x.db.View(func(tx *badger.Txn) error {
		err := get(tx, schemeKey(), &found)
		if !errors.Is(err, badger.ErrKeyNotFound) {
			return err
		}
		fresh = true
		return scan(tx, nil, nil, func(k []byte, _ *badger.Item) (bool, error) {
			return false, fmt.Errorf("%w: %s has rows and no scheme version: it is not an index of vfsd", ErrCorrupt, x.dir)
		})
	})
	switch {
	case err != nil:
		return err
	case fresh:
		return x.db.Update(func(tx *badger.Txn) error { return set(tx, schemeKey(), scheme) })
	case found == 1:
		return x.fromScheme1()
	case found > scheme:
		return fmt.Errorf("%w: the index in %s was written by a newer vfsd (scheme %d, this one knows %d): use that one, or another --state-dir", session.ErrConflict, x.dir, found, scheme)
	case found < scheme:
		return fmt.Errorf("%w: the index in %s has scheme %d, which this vfsd does not read (it knows %d): use another --state-dir", session.ErrConflict, x.dir, found, scheme)
	}
	return nil
}
