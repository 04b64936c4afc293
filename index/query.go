package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
)

// Entry implements artifact.Store. The names of an open entry are as OpenEntries gives them.
func (x *Index) Entry(ctx context.Context, id string) (e artifact.Entry, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		r, err := loadAs[*entryRow](tx, entryKey(id))
		if err != nil {
			return err
		}
		var log []rename
		if !r.Final {
			log, err = renames(tx, r.SessionID, r.Generation)
		}
		e = r.current(log)
		return err
	})
	return e, missing(err, "artifact", id)
}

// OpenEntries implements artifact.Store.
func (x *Index) OpenEntries(ctx context.Context, sessionID string) (open []artifact.Entry, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		from, _, err := oldest(tx, sessionID)
		if err != nil {
			return err
		}
		log, err := renames(tx, sessionID, from)
		if err != nil {
			return err
		}
		return follow(tx, under(kindOpen, sessionID), nil, func(r *entryRow) bool {
			open = append(open, r.current(log))
			return ctx.Err() == nil
		})
	})
	slices.SortFunc(open, func(a, b artifact.Entry) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return open, cmp.Or(err, ctx.Err())
}

// Entries implements artifact.Store.
func (x *Index) Entries(ctx context.Context, q artifact.Query) (found []artifact.Entry, err error) {
	if q.From == math.MaxUint64 {
		return nil, nil
	}
	err = x.view(ctx, func(tx *badger.Txn) error {
		if q.ToolUseID == "" && len(q.Executions) > 1 {
			found, err = merged(ctx, tx, q)
		} else {
			found, err = ranged(ctx, tx, q)
		}
		return err
	})
	return found, cmp.Or(err, ctx.Err())
}

// ranged answers a query that one range holds.
func ranged(ctx context.Context, tx *badger.Txn, q artifact.Query) (found []artifact.Entry, err error) {
	err = follow(tx, narrowest(q), key(nil).num(q.From+1), func(r *entryRow) bool {
		if len(q.Executions) == 0 || slices.Contains(q.Executions, r.Who.ExecutionID) {
			found = append(found, r.value())
		}
		return ctx.Err() == nil && (q.Limit <= 0 || len(found) < q.Limit)
	})
	return found, err
}

// narrowest returns the smallest range that holds all answers.
func narrowest(q artifact.Query) key {
	switch {
	case q.ToolUseID != "":
		return under(pick(q, kindArtifactToolUse, kindFinalToolUse), q.SessionID).text(q.ToolUseID)
	case len(q.Executions) == 1:
		return executionPrefix(q, q.Executions[0])
	}
	return under(pick(q, kindArtifact, kindFinal), q.SessionID)
}

func executionPrefix(q artifact.Query, execution string) key {
	return under(pick(q, kindArtifactExecution, kindFinalExecution), q.SessionID).text(execution)
}

func pick(q artifact.Query, artifacts, all byte) byte {
	if q.ArtifactsOnly {
		return artifacts
	}
	return all
}

// hit is a row of one of several ranges: an entry's sequence number and primary key.
type hit struct {
	seq     uint64
	primary []byte
}

// merged answers a query over the ranges of several executions.
func merged(ctx context.Context, tx *badger.Txn, q artifact.Query) ([]artifact.Entry, error) {
	hits, err := hitsOf(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.seq, b.seq) })
	if q.Limit > 0 && len(hits) > q.Limit {
		hits = hits[:q.Limit]
	}
	var found []artifact.Entry
	for _, h := range hits {
		r, err := loadAs[*entryRow](tx, h.primary)
		if err != nil {
			return nil, err
		}
		found = append(found, r.value())
	}
	return found, nil
}

// hitsOf collects up to q.Limit hits of each range: more cannot be in the answer.
func hitsOf(ctx context.Context, tx *badger.Txn, q artifact.Query) (hits []hit, err error) {
	executions := slices.Compact(slices.Sorted(slices.Values(q.Executions)))
	for _, execution := range executions {
		n := 0
		prefix := executionPrefix(q, execution)
		err := scan(tx, prefix, key(nil).num(q.From+1), func(k []byte, item *badger.Item) (bool, error) {
			primary, err := item.ValueCopy(nil)
			if len(k) >= len(prefix)+8 {
				hits = append(hits, hit{binary.BigEndian.Uint64(k[len(prefix):]), primary})
				n++
			}
			return ctx.Err() == nil && (q.Limit <= 0 || n < q.Limit), err
		})
		if err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// EntriesOf implements artifact.Store.
func (x *Index) EntriesOf(ctx context.Context, sessionID string, f change.FileID) ([]artifact.Entry, error) {
	return list(ctx, x, inodePrefix(sessionID, f), (*entryRow).value)
}

// Versions implements artifact.Store.
func (x *Index) Versions(ctx context.Context, sessionID, path string) ([]artifact.Entry, error) {
	found, err := list(ctx, x, pathPrefix(sessionID, path), (*entryRow).value)
	return slices.DeleteFunc(found, func(e artifact.Entry) bool { return e.Path() != path }), err
}

// ArtifactsBelow implements artifact.Store.
func (x *Index) ArtifactsBelow(ctx context.Context, sessionID, dir string, limit int) (found []artifact.Entry, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		return latestBelow(tx, under(kindBelow, sessionID).clear(dir+"/"), func(r *entryRow) bool {
			if e := r.value(); strings.HasPrefix(e.Path(), dir+"/") {
				found = append(found, e)
			}
			return ctx.Err() == nil && len(found) < limit
		})
	})
	return found, cmp.Or(err, ctx.Err())
}

// latestBelow visits the last entry of each path in the range.
func latestBelow(tx *badger.Txn, prefix key, visit func(*entryRow) bool) error {
	var path, last []byte // the path in the key and the primary key of the row before
	emit := func() (bool, error) {
		if last == nil {
			return true, nil
		}
		r, err := loadAs[*entryRow](tx, last)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return true, nil // left to Check
		}
		return err == nil && visit(r), err
	}
	more := true
	err := scan(tx, prefix, nil, func(k []byte, item *badger.Item) (_ bool, err error) {
		end := len(prefix) + bytes.IndexByte(k[len(prefix):], 0)
		end = min(end+1+pathHash, len(k))
		if !bytes.Equal(k[:end], path) {
			if more, err = emit(); err != nil || !more {
				return false, err
			}
		}
		path = k[:end]
		last, err = item.ValueCopy(nil)
		return true, err
	})
	if err != nil || !more {
		return err
	}
	_, err = emit()
	return err
}

// LastSeq implements artifact.Store.
func (x *Index) LastSeq(ctx context.Context, sessionID string) (n uint64, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		n, err = number(tx, lastSeqKey(sessionID))
		return err
	})
	return n, err
}
