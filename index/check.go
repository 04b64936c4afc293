package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// Check compares the index with itself on one snapshot and calls found with one line for each
// disagreement: rows that cannot be decoded or lie under a wrong key, secondary rows that are
// missing, stray or wrong, rows that refer to missing ones, and sequence numbers that are not
// unique or above the counter. The error is only for a check that could not be carried out.
func (x *Index) Check(ctx context.Context, found func(string)) error {
	return x.view(ctx, func(tx *badger.Txn) error {
		c := checker{ctx: ctx, tx: tx, found: found, seed: maphash.MakeSeed(), seen: map[string]bool{}}
		for _, part := range []func() error{c.primary, c.secondary, c.sequence, c.others, c.unknown} {
			if err := part(); err != nil {
				return fmt.Errorf("index: check: %w", err)
			}
		}
		return nil
	})
}

// checker compares what secondary rows there are with those that the primary rows want by a sum of
// hashes for each kind. Only where the sums differ does it look at each row: that costs a
// hundred times as much.
type checker struct {
	ctx    context.Context
	tx     *badger.Txn
	found  func(string)
	seed   maphash.Seed
	wanted [256]uint64     // by kind
	seen   map[string]bool // rows that are referred to and there, some of them
}

func (c *checker) report(format string, args ...any) { c.found(fmt.Sprintf("index: "+format, args...)) }

// each visits the rows below prefix.
func (c *checker) each(prefix []byte, visit func(k []byte, item *badger.Item) error) error {
	return scan(c.tx, prefix, nil, func(k []byte, item *badger.Item) (bool, error) {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		return true, visit(k, item)
	})
}

// primary checks that each primary row can be read and has its parents, and sums up the secondary
// rows that it wants.
func (c *checker) primary() error {
	for _, kind := range []byte(primaryKinds) {
		if err := c.each([]byte{kind}, c.primaryRow); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) primaryRow(k []byte, item *badger.Item) error {
	r := newRow(k[0])
	err := item.Value(func(raw []byte) error { return decode(k, raw, r) })
	if errors.Is(err, ErrCorrupt) {
		c.report("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(r.key(), k) {
		c.report("%s holds another row: %s", describe(k), describe(r.key()))
		return nil
	}
	for _, s := range r.secondary() {
		c.wanted[s[0]] += c.hash(s, k)
	}
	return c.refers(r)
}

// hash is of a seed that nobody knows, so that no damage can be made up that sums up to nothing.
func (c *checker) hash(k, value []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.Write(k)
	h.WriteByte(0) // the key tells its own length
	h.Write(value)
	return h.Sum64()
}

// secondary compares the secondary rows of each kind with the sums.
func (c *checker) secondary() error {
	for _, kind := range []byte(secondaryKinds) {
		var sum uint64
		err := c.each([]byte{kind}, func(k []byte, item *badger.Item) error {
			return item.Value(func(v []byte) error {
				sum += c.hash(k, v)
				return nil
			})
		})
		if err != nil {
			return err
		}
		if sum == c.wanted[kind] {
			continue
		}
		if err := errors.Join(c.missingOf(kind), c.each([]byte{kind}, c.strayRow)); err != nil {
			return err
		}
	}
	return nil
}

// missingOf looks for secondary rows of the kind that primary rows miss.
func (c *checker) missingOf(kind byte) error {
	for _, primary := range []byte(primaryKinds) {
		err := c.each([]byte{primary}, func(k []byte, _ *badger.Item) error {
			r, err := load(c.tx, k)
			if err != nil || !bytes.Equal(r.key(), k) {
				return ignoreReported(err)
			}
			return c.linked(r, kind)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) linked(r row, kind byte) error {
	for _, s := range r.secondary() {
		if s[0] != kind {
			continue
		}
		item, err := c.tx.Get(s)
		if errors.Is(err, badger.ErrKeyNotFound) {
			c.report("%s is missing for %s", describe(s), describe(r.key()))
			continue
		}
		if err != nil {
			return err
		}
		err = item.Value(func(v []byte) error {
			if !bytes.Equal(v, r.key()) {
				c.report("%s leads to %s instead of %s", describe(s), describe(v), describe(r.key()))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strayRow tells of a secondary row that no primary row wants.
func (c *checker) strayRow(k []byte, item *badger.Item) error {
	primary, err := item.ValueCopy(nil)
	if err != nil {
		return err
	}
	if len(primary) == 0 {
		c.report("%s leads nowhere", describe(k))
		return nil
	}
	r, err := load(c.tx, primary)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		c.report("%s leads to %s, which is missing", describe(k), describe(primary))
		return nil
	case errors.Is(err, ErrCorrupt):
		if newRow(primary[0]) == nil {
			c.report("%s leads to %s, which is no primary row", describe(k), describe(primary))
		}
		return nil // otherwise the primary row was reported
	case err != nil:
		return err
	}
	if !contains(r.secondary(), k) {
		c.report("%s leads to %s, which does not want it", describe(k), describe(primary))
	}
	return nil
}

// sequence looks for sequence numbers that were given twice: two rows that differ in the entry only.
func (c *checker) sequence() error {
	var last []byte
	return c.each([]byte{kindFinal}, func(k []byte, _ *badger.Item) error {
		end := 1 + textLen(k[1:]) + 8
		if len(k) < end {
			return nil // a stray row, told of
		}
		if bytes.Equal(k[:end], last) {
			c.report("%s has a sequence number that was given twice: %d", describe(k), trailing(k[:end]))
		}
		last = k[:end]
		return nil
	})
}

// ignoreReported drops what the look at the primary and secondary rows tells of.
func ignoreReported(err error) error {
	if errors.Is(err, badger.ErrKeyNotFound) || errors.Is(err, ErrCorrupt) {
		return nil
	}
	return err
}

// unknown looks for keys of no kind.
func (c *checker) unknown() error {
	return c.each(nil, func(k []byte, _ *badger.Item) error {
		if len(k) == 0 || !strings.Contains(primaryKinds+secondaryKinds+otherKinds, string(rune(k[0]))) {
			c.report("%s is of no known kind", describe(k))
		}
		return nil
	})
}
