package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/artifact"
)

// foldAfter is how long a rename log may grow before open entries are rewritten: a tree that
// renames a directory back and forth must not make every listing slower.
const foldAfter = 4096

// rename is a row of the rename log.
type rename struct {
	From       []byte `json:"from"`
	To         []byte `json:"to"`
	generation uint64
}

func generationKey(sessionID string) key { return under(kindGeneration, sessionID) }

func logRename(tx *badger.Txn, r artifact.RenameDir) error {
	last, err := number(tx, generationKey(r.SessionID))
	if err != nil {
		return err
	}
	if err := set(tx, generationKey(r.SessionID), last+1); err != nil {
		return err
	}
	return set(tx, under(kindRename, r.SessionID).num(last+1), rename{From: []byte(r.From), To: []byte(r.To)})
}

// renames returns the log of a session after generation from, in order.
func renames(tx *badger.Txn, sessionID string, from uint64) ([]rename, error) {
	var log []rename
	prefix := under(kindRename, sessionID)
	err := scan(tx, prefix, key(nil).num(from+1), func(k []byte, item *badger.Item) (bool, error) {
		r := rename{generation: trailing(k)}
		err := item.Value(func(raw []byte) error { return decode(k, raw, &r) })
		log = append(log, r)
		return true, err
	})
	return log, err
}

func trailing(k []byte) uint64 {
	if len(k) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k[len(k)-8:])
}

// current returns the entry with its names after the renames that came after it was put.
func (r *entryRow) current(log []rename) artifact.Entry {
	e := r.value()
	later, _ := slices.BinarySearchFunc(log, r.Generation+1, func(l rename, g uint64) int { return cmp.Compare(l.generation, g) })
	for _, l := range log[later:] {
		for i, name := range e.Names {
			if rest, below := strings.CutPrefix(name, string(l.From)+"/"); below {
				e.Names[i] = string(l.To) + "/" + rest
			}
		}
	}
	return e
}

// oldest returns the generation of the open entry that needs the longest log.
func oldest(tx *badger.Txn, sessionID string) (generation uint64, found bool, err error) {
	prefix := under(kindOpen, sessionID)
	err = scan(tx, prefix, nil, func(k []byte, _ *badger.Item) (bool, error) {
		if len(k) < len(prefix)+8 {
			return true, nil // damaged: Check tells
		}
		generation, found = binary.BigEndian.Uint64(k[len(prefix):]), true
		return false, nil
	})
	return generation, found, err
}

// trim removes the rows of the log that no open entry needs and returns how many stay.
func trim(tx *badger.Txn, sessionID string) (kept uint64, err error) {
	last, err := number(tx, generationKey(sessionID))
	if err != nil || last == 0 {
		return 0, err
	}
	needed, open, err := oldest(tx, sessionID)
	if err != nil {
		return 0, err
	}
	if !open { // the log begins anew: nobody remembers a generation of it
		needed = last
		if err := tx.Delete(generationKey(sessionID)); err != nil {
			return 0, err
		}
	}
	var done [][]byte
	err = scan(tx, under(kindRename, sessionID), nil, func(k []byte, _ *badger.Item) (bool, error) {
		if trailing(k) <= needed {
			done = append(done, k)
		}
		return trailing(k) < needed, nil
	})
	for _, k := range done {
		if err == nil {
			err = tx.Delete(k)
		}
	}
	return last - needed, err
}

// fold rewrites the open entries of the sessions with their names as they are now, so that their
// logs can go. It is an economy: where it fails the log stays long, and what was applied stays applied.
func (x *Index) fold(ctx context.Context, sessions []string) {
	for _, id := range sessions {
		for more := true; more; {
			err := x.update(ctx, func(tx *badger.Txn) (err error) {
				more, err = x.foldSome(tx, id)
				return err
			})
			if err != nil {
				x.log.Warn("the rename log could not be shortened", "session", id, "error", err)
				more = false
			}
		}
	}
}

// foldSome rewrites the entries that are furthest behind.
func (x *Index) foldSome(tx *badger.Txn, sessionID string) (more bool, err error) {
	const some = 100
	last, err := number(tx, generationKey(sessionID))
	if err != nil {
		return false, err
	}
	from, open, err := oldest(tx, sessionID)
	if err != nil || !open || from == last {
		return false, err
	}
	log, err := renames(tx, sessionID, from)
	if err != nil {
		return false, err
	}
	var rows []*entryRow
	err = follow(tx, under(kindOpen, sessionID), nil, func(r *entryRow) bool {
		if r.Generation < last {
			rows = append(rows, r)
		}
		return r.Generation < last && len(rows) < some
	})
	for _, r := range rows {
		if err != nil {
			return false, err
		}
		r.setNames(r.current(log).Names)
		r.Generation = last
		err = x.put(tx, r)
	}
	if err == nil {
		_, err = trim(tx, sessionID)
	}
	return len(rows) == some, err
}
