package index

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// row is a primary row: it knows its key and the keys of all the secondary rows that lead to it.
type row interface {
	key() key
	secondary() []key
}

// newRow returns an empty row to decode the primary row of that kind into.
func newRow(kind byte) row {
	switch kind {
	case kindSession:
		return &sessionRow{}
	case kindExecution:
		return &executionRow{}
	case kindToolUse:
		return &toolUseRow{}
	case kindEntry:
		return &entryRow{}
	case kindToken:
		return &tokenRow{}
	}
	return nil
}

// load reads the primary row at k. A missing one is badger.ErrKeyNotFound.
func load(tx *badger.Txn, k []byte) (row, error) {
	r := newRow(k[0])
	if r == nil {
		return nil, decode(k, nil, nil)
	}
	return r, get(tx, k, r)
}

// put writes r in place of the row of the same key and makes the secondary rows right.
func (x *Index) put(tx *badger.Txn, r row) error {
	k := r.key()
	old, err := x.previous(tx, k)
	if err != nil {
		return err
	}
	if err := set(tx, k, r); err != nil {
		return err
	}
	return relink(tx, k, old, r.secondary())
}

// remove deletes the primary row at k with its secondary rows. A missing one is no error.
func (x *Index) remove(tx *badger.Txn, k key) error {
	old, err := x.previous(tx, k)
	if err != nil {
		return err
	}
	if err := relink(tx, k, old, nil); err != nil {
		return err
	}
	return tx.Delete(k)
}

// previous returns the secondary keys of the row at k as it stands. A row that cannot be decoded is
// written over: to refuse would stop all recording. Check finds what it leaves behind.
func (x *Index) previous(tx *badger.Txn, k key) ([]key, error) {
	old, err := load(tx, k)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return nil, nil
	case errors.Is(err, ErrCorrupt):
		x.log.Warn("a damaged row is replaced", "row", describe(k), "error", err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	return old.secondary(), nil
}

func relink(tx *badger.Txn, k key, old, now []key) error {
	for _, s := range old {
		if !contains(now, s) {
			if err := tx.Delete(s); err != nil {
				return err
			}
		}
	}
	for _, s := range now {
		if !contains(old, s) {
			if err := tx.Set(s, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func contains(keys []key, k key) bool {
	return slices.ContainsFunc(keys, func(o key) bool { return bytes.Equal(o, k) })
}

// follow loads the primary rows that the secondary rows below prefix lead to, in order, until visit
// returns false. A secondary row that leads nowhere is left to Check.
func follow[T row](tx *badger.Txn, prefix, from []byte, visit func(T) bool) error {
	return scan(tx, prefix, from, func(_ []byte, item *badger.Item) (bool, error) {
		primary, err := item.ValueCopy(nil)
		if err != nil {
			return false, err
		}
		r, err := loadAs[T](tx, primary)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return visit(r), nil
	})
}

func loadAs[T row](tx *badger.Txn, k []byte) (T, error) {
	var none T
	if len(k) == 0 {
		return none, badger.ErrKeyNotFound
	}
	r, err := load(tx, k)
	if err != nil {
		return none, err
	}
	if t, ok := r.(T); ok {
		return t, nil
	}
	return none, badger.ErrKeyNotFound
}
