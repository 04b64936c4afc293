package index

import (
	"bytes"
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// maxSeen bounds what a check keeps in memory. Neighbours mostly refer to the same rows.
const maxSeen = 10_000

// refers checks that what r refers to is there.
func (c *checker) refers(r row) error {
	switch r := r.(type) {
	case *executionRow:
		return errors.Join(c.session(r, r.SessionID), c.execution(r, r.SessionID, r.ParentID))
	case *toolUseRow:
		return errors.Join(c.session(r, r.SessionID), c.execution(r, r.SessionID, r.ExecutionID))
	case *entryRow:
		return errors.Join(c.session(r, r.SessionID), c.execution(r, r.SessionID, r.Who.ExecutionID),
			c.toolUse(r, r.SessionID, r.Who.ToolUseID), c.counters(r))
	case *tokenRow:
		return errors.Join(c.session(r, r.SessionID), c.there(r, "artifact", r.ArtifactID, entryKey(r.ArtifactID)))
	}
	return nil
}

func (c *checker) session(r row, id string) error {
	return c.there(r, "session", id, sessionKey(id))
}

func (c *checker) execution(r row, sessionID, id string) error {
	if id == "" {
		return nil
	}
	return c.there(r, "execution", id, executionKey(sessionID, id))
}

func (c *checker) toolUse(r row, sessionID, id string) error {
	if id == "" {
		return nil
	}
	return c.there(r, "tool use", id, toolUseKey(sessionID, id))
}

func (c *checker) there(r row, what, id string, k key) error {
	if c.seen[string(k)] {
		return nil
	}
	_, err := c.tx.Get(k)
	if errors.Is(err, badger.ErrKeyNotFound) {
		c.report("%s refers to %s %q, which is missing", describeRow(r), what, id)
		return nil
	}
	if len(c.seen) >= maxSeen {
		clear(c.seen)
	}
	c.seen[string(k)] = err == nil
	return err
}

// describeRow keeps a token's hash short.
func describeRow(r row) string {
	if t, ok := r.(*tokenRow); ok {
		return "token " + hexHash(t.Hash)
	}
	return describe(r.key())
}

// counters checks an entry against the counters of its session.
func (c *checker) counters(r *entryRow) error {
	k, value, what := lastSeqKey(r.SessionID), r.Seq, "sequence number"
	if !r.Final {
		k, value, what = generationKey(r.SessionID), r.Generation, "generation"
	}
	last, err := number(c.tx, k)
	if err != nil {
		return ignoreReported(err)
	}
	if value > last {
		c.report("entry %s has %s %d, above the session's last one %d", r.ID, what, value, last)
	}
	return nil
}

// others checks the rename logs and the counters.
func (c *checker) others() error {
	values := map[byte]func() any{
		kindRename:     func() any { return new(rename) },
		kindGeneration: func() any { return new(uint64) },
		kindLastSeq:    func() any { return new(uint64) },
		kindScheme:     func() any { return new(uint64) },
	}
	for _, kind := range []byte(otherKinds) {
		err := c.each([]byte{kind}, func(k []byte, _ *badger.Item) error {
			if err := get(c.tx, k, values[kind]()); err != nil {
				c.report("%v", err)
				return nil
			}
			return c.owned(k)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// owned checks that the session of a rename log or counter is there: the key begins with it.
func (c *checker) owned(k []byte) error {
	if k[0] == kindScheme {
		if !bytes.Equal(k, schemeKey()) {
			c.report("%s is of no known kind", describe(k))
		}
		return nil
	}
	id := k[1:]
	if k[0] == kindRename && len(id) >= 8 {
		id = id[:len(id)-8]
	}
	_, err := c.tx.Get(append(key{kindSession}, id...))
	if errors.Is(err, badger.ErrKeyNotFound) {
		c.report("%s belongs to a session that is missing", describe(k))
		return nil
	}
	return err
}
