package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// deleteSize is how many rows one transaction deletes.
const deleteSize = 200

// DeleteSession implements session.Store. It takes several transactions, children first: one that
// was cut short leaves a session with less in it, to be deleted again.
func (x *Index) DeleteSession(ctx context.Context, id string) error {
	if _, err := x.Session(ctx, id); err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	if err := x.deleteBelow(ctx, id); err != nil {
		return fmt.Errorf("index: delete session %s: %w; delete it again to finish", id, err)
	}
	return x.Sync()
}

func (x *Index) deleteBelow(ctx context.Context, id string) error {
	for _, prefix := range []key{
		newKey(kindTokenSession).text(id),
		under(kindFinal, id), under(kindOpen, id),
		under(kindToolUseTime, id), under(kindExecutionTime, id),
	} {
		if _, err := x.removeBelow(ctx, prefix, nil); err != nil {
			return err
		}
	}
	if err := x.deleteLog(ctx, id); err != nil {
		return err
	}
	return x.update(ctx, func(tx *badger.Txn) error {
		for _, k := range []key{generationKey(id), lastSeqKey(id)} {
			if err := tx.Delete(k); err != nil {
				return err
			}
		}
		return x.remove(tx, sessionKey(id))
	})
}

// removeBelow removes the primary rows that the secondary rows below prefix, and before end where
// that is set, lead to, and returns how many it removed.
func (x *Index) removeBelow(ctx context.Context, prefix, end key) (n int, err error) {
	err = x.pages(ctx, prefix, end, func(tx *badger.Txn, k, primary []byte) error {
		if len(primary) > 0 {
			if err := x.remove(tx, primary); err != nil {
				return err
			}
		}
		return tx.Delete(k) // also where it led nowhere
	}, &n)
	return n, err
}

func (x *Index) deleteLog(ctx context.Context, id string) error {
	var n int
	return x.pages(ctx, under(kindRename, id), nil, func(tx *badger.Txn, k, _ []byte) error { return tx.Delete(k) }, &n)
}

// pages calls visit for each row below prefix and before end, a bounded number of rows in a
// transaction, and counts them in n. Each page begins where the last one ended: to begin anew
// would scan over all that was deleted so far.
func (x *Index) pages(ctx context.Context, prefix, end key, visit func(tx *badger.Txn, k, value []byte) error, n *int) error {
	var after []byte
	for {
		page, err := x.page(ctx, prefix, after, end)
		if err != nil || len(page) == 0 {
			return err
		}
		err = x.update(ctx, func(tx *badger.Txn) error {
			for _, r := range page {
				if err := visit(tx, r.key, r.value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		*n += len(page)
		after = append(page[len(page)-1].key[len(prefix):], 0)
	}
}

type rawRow struct{ key, value []byte }

func (x *Index) page(ctx context.Context, prefix, after, end key) (page []rawRow, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		return scan(tx, prefix, after, func(k []byte, item *badger.Item) (bool, error) {
			if end != nil && bytes.Compare(k, end) >= 0 {
				return false, nil
			}
			value, err := item.ValueCopy(nil)
			page = append(page, rawRow{k, value})
			return len(page) < deleteSize, err
		})
	})
	return page, err
}
