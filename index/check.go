package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// Check compares the index with itself on one snapshot and calls found with one line for each
// disagreement: rows that cannot be decoded or lie under a wrong key, secondary rows that are
// missing, stray or wrong, rows that refer to missing ones, and sequence numbers that are not
// unique or above the counter. The error is only for a check that could not be carried out.
func (x *Index) Check(ctx context.Context, found func(string)) error {
	return x.view(ctx, func(tx *badger.Txn) error {
		c := checker{ctx: ctx, tx: tx, found: found}
		for _, part := range []func() error{c.primary, c.secondary, c.sequence, c.others, c.unknown} {
			if err := part(); err != nil {
				return fmt.Errorf("index: check: %w", err)
			}
		}
		return nil
	})
}

type checker struct {
	ctx   context.Context
	tx    *badger.Txn
	found func(string)
	links int // secondary rows that are as their primary rows want them
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

// primary checks that each primary row can be read, has its secondary rows and its parents.
func (c *checker) primary() error {
	for _, kind := range []byte(primaryKinds) {
		err := c.each([]byte{kind}, func(k []byte, _ *badger.Item) error {
			r, err := load(c.tx, k)
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
			if err := c.linked(r); err != nil {
				return err
			}
			return c.refers(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) linked(r row) error {
	for _, s := range r.secondary() {
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
		c.links++
	}
	return nil
}

// secondary looks for rows that no primary row wants. Where their number is right there are none.
func (c *checker) secondary() error {
	n := 0
	for _, kind := range []byte(secondaryKinds) {
		err := c.each([]byte{kind}, func([]byte, *badger.Item) error { n++; return nil })
		if err != nil {
			return err
		}
	}
	if n == c.links {
		return nil
	}
	for _, kind := range []byte(secondaryKinds) {
		if err := c.each([]byte{kind}, c.wanted); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) wanted(k []byte, item *badger.Item) error {
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

// sequence looks for sequence numbers that were given twice.
func (c *checker) sequence() error {
	var last []byte
	return c.each([]byte{kindFinal}, func(k []byte, item *badger.Item) error {
		primary, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		r, err := loadAs[*entryRow](c.tx, primary)
		if err != nil {
			return ignoreReported(err)
		}
		number := under(kindFinal, r.SessionID).num(r.Seq)
		if bytes.Equal(number, last) {
			c.report("sequence number %d of session %s was given twice, the second time to entry %s", r.Seq, r.SessionID, r.ID)
		}
		last = number
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
