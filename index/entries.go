package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

type entryRow struct {
	artifact.Entry
	Names      []string `json:"names,omitempty"`    // in place of Entry.Names
	RawNames   [][]byte `json:"rawNames,omitempty"` // in place of Names where one is not UTF-8, which JSON would change
	Generation uint64   `json:"generation,omitempty"`
}

func entryKey(id string) key { return newKey(kindEntry).text(id) }

func newEntryRow(e artifact.Entry) *entryRow {
	r := &entryRow{Entry: e}
	r.setNames(e.Names)
	return r
}

func (r *entryRow) setNames(names []string) {
	r.Entry.Names, r.Names, r.RawNames = nil, names, nil
	if slices.ContainsFunc(names, func(n string) bool { return !utf8.ValidString(n) }) {
		r.Names = nil
		for _, n := range names {
			r.RawNames = append(r.RawNames, []byte(n))
		}
	}
}

// value returns the entry with its names as they were put.
func (r *entryRow) value() artifact.Entry {
	e := r.Entry
	e.Names = slices.Clone(r.Names)
	for _, n := range r.RawNames {
		e.Names = append(e.Names, string(n))
	}
	return e
}

func (r *entryRow) key() key { return entryKey(r.ID) }

func (r *entryRow) secondary() []key {
	if !r.Final {
		return []key{under(kindOpen, r.SessionID).num(r.Generation).text(r.ID)}
	}
	tail := key(nil).num(r.Seq).text(r.ID)
	execution := func(kind byte) key { return under(kind, r.SessionID).text(r.Who.ExecutionID).fixed(tail) }
	toolUse := func(kind byte) key { return under(kind, r.SessionID).text(r.Who.ToolUseID).fixed(tail) }
	keys := []key{
		under(kindFinal, r.SessionID).fixed(tail),
		execution(kindFinalExecution),
		inodePrefix(r.SessionID, r.File).fixed(tail),
		pathPrefix(r.SessionID, r.value().Path()).fixed(tail),
	}
	if r.Who.ToolUseID != "" {
		keys = append(keys, toolUse(kindFinalToolUse))
	}
	if r.Artifact && !r.Removed {
		keys = append(keys, under(kindArtifact, r.SessionID).fixed(tail), execution(kindArtifactExecution),
			belowKey(r.SessionID, r.value().Path()).fixed(tail))
		if r.Who.ToolUseID != "" {
			keys = append(keys, toolUse(kindArtifactToolUse))
		}
	}
	return keys
}

func inodePrefix(sessionID string, f change.FileID) key {
	return under(kindInode, sessionID).num(f.Dev).num(f.Ino).num(uint64(f.Birth))
}

func pathPrefix(sessionID, path string) key { return under(kindPath, sessionID).path(path) }

// belowKey is followed by a sequence number and an id. The 0, which no path has, keeps the versions of
// a path together.
func belowKey(sessionID, path string) key {
	return append(under(kindBelow, sessionID).clear(path), 0).path(path)
}

func lastSeqKey(sessionID string) key { return under(kindLastSeq, sessionID) }

// batchSize is how many mutations go into one transaction, so that one of usual entries fits.
const batchSize = 500

// Apply implements artifact.Store. A batch may be split into several transactions, in order.
func (x *Index) Apply(ctx context.Context, batch []artifact.Mutation) error {
	for part := range slices.Chunk(batch, batchSize) {
		if err := x.applyPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) applyPart(ctx context.Context, part []artifact.Mutation) error {
	var long []string
	err := x.update(ctx, func(tx *badger.Txn) (err error) {
		long, err = x.applyIn(tx, part)
		return err
	})
	switch {
	case err == nil:
		x.fold(ctx, long)
		return nil
	case !errors.Is(err, badger.ErrTxnTooBig):
		return fmt.Errorf("index: record: %w", err)
	case len(part) == 1:
		return fmt.Errorf("index: record: %w: one entry is too large for a transaction: %w", session.ErrInvalid, err)
	}
	half := len(part) / 2
	if err := x.applyPart(ctx, part[:half]); err != nil {
		return err
	}
	return x.applyPart(ctx, part[half:])
}

// applyIn carries out part and returns the sessions whose rename log has grown long.
func (x *Index) applyIn(tx *badger.Txn, part []artifact.Mutation) (long []string, err error) {
	touched := map[string]bool{} // sessions whose rename log may have changed or lost a reader
	for _, m := range part {
		switch {
		case m.Put != nil:
			touched[m.Put.SessionID] = true
			err = x.putEntry(tx, *m.Put)
		case m.Delete != nil:
			touched[m.Delete.SessionID] = true
			err = x.deleteEntry(tx, *m.Delete)
		case m.RenameDir != nil:
			touched[m.RenameDir.SessionID] = true
			err = logRename(tx, *m.RenameDir)
		}
		if err != nil {
			return nil, err
		}
	}
	for id := range touched {
		kept, err := trim(tx, id)
		if err != nil {
			return nil, err
		}
		if kept > foldAfter {
			long = append(long, id)
		}
	}
	return long, nil
}

func (x *Index) putEntry(tx *badger.Txn, e artifact.Entry) error {
	if e.ID == "" || e.SessionID == "" || e.Final != (e.Seq != 0) {
		return fmt.Errorf("%w entry %q of session %q: final %v with sequence number %d", session.ErrInvalid, e.ID, e.SessionID, e.Final, e.Seq)
	}
	r := newEntryRow(e)
	if e.Final {
		if err := raiseLastSeq(tx, e.SessionID, e.Seq); err != nil {
			return err
		}
		return x.put(tx, r)
	}
	generation, err := number(tx, generationKey(e.SessionID))
	if err != nil {
		return err
	}
	r.Generation = generation
	return x.put(tx, r)
}

func raiseLastSeq(tx *badger.Txn, sessionID string, seq uint64) error {
	last, err := number(tx, lastSeqKey(sessionID))
	if err != nil || last >= seq {
		return err
	}
	return set(tx, lastSeqKey(sessionID), seq)
}

// deleteEntry leaves an entry of the same id in another session alone.
func (x *Index) deleteEntry(tx *badger.Txn, k artifact.EntryKey) error {
	r, err := loadAs[*entryRow](tx, entryKey(k.ID))
	if errors.Is(err, badger.ErrKeyNotFound) || err == nil && r.SessionID != k.SessionID {
		return nil
	}
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	return x.remove(tx, entryKey(k.ID))
}
