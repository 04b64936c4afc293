package index

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/session"
)

// ErrCorrupt says that a row, or the whole index, cannot be read.
var ErrCorrupt = errors.New("index is damaged")

// codecJSON is the first byte of a value that goes on as JSON.
const codecJSON = 1

// maxValue is half of what a file of Badger's value log takes. Only an entry with thousands of long
// names comes near.
const maxValue = 32 << 20

func encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w value for the index: %w", session.ErrInvalid, err)
	}
	return append([]byte{codecJSON}, data...), nil
}

// decode reads the value of the row at k into v. Its errors wrap ErrCorrupt.
func decode(k, raw []byte, v any) error {
	if len(raw) == 0 || raw[0] != codecJSON {
		return fmt.Errorf("%w: %s has an unknown codec", ErrCorrupt, describe(k))
	}
	if err := json.Unmarshal(raw[1:], v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, describe(k), err)
	}
	return nil
}

// get reads the row at k into v. A missing row is badger.ErrKeyNotFound.
func get(tx *badger.Txn, k []byte, v any) error {
	item, err := tx.Get(k)
	if err != nil {
		return err
	}
	return item.Value(func(raw []byte) error { return decode(k, raw, v) })
}

func set(tx *badger.Txn, k []byte, v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	if len(raw) > maxValue {
		return fmt.Errorf("%w value for the index: it has %d MiB, %d are allowed", session.ErrInvalid, len(raw)>>20, maxValue>>20)
	}
	return tx.Set(k, raw)
}

// number reads a counter, 0 where it is missing.
func number(tx *badger.Txn, k []byte) (uint64, error) {
	var n uint64
	if err := get(tx, k, &n); err != nil && !errors.Is(err, badger.ErrKeyNotFound) {
		return 0, err
	}
	return n, nil
}
