// Package memstore keeps entries and tokens in memory: for tests, and as the plain statement of
// what an artifact.Store and an artifact.TokenStore do.
//
// Nothing outlives the value. Everything handed in and out is a copy.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Store is an artifact.Store in memory. The zero value is not usable: see New.
type Store struct {
	mu      sync.Mutex // guards all below
	entries map[string]artifact.Entry
	finals  map[any][]string  // ids by pathKey and fileKey of what was put as final
	lastSeq map[string]uint64 // by session
	syncs   int
}

type pathKey struct{ session, path string }

type fileKey struct {
	session string
	file    change.FileID
}

// New returns an empty store.
func New() *Store {
	return &Store{entries: map[string]artifact.Entry{}, finals: map[any][]string{}, lastSeq: map[string]uint64{}}
}

// Apply carries out all of a batch or, where a mutation is malformed, the part before it.
func (s *Store) Apply(_ context.Context, batch []artifact.Mutation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		switch {
		case m.Put != nil:
			s.put(*m.Put)
		case m.Delete != nil:
			if s.entries[m.Delete.ID].SessionID == m.Delete.SessionID {
				delete(s.entries, m.Delete.ID)
			}
		case m.RenameDir != nil:
			s.renameDir(*m.RenameDir)
		default:
			return fmt.Errorf("apply: %w mutation: it sets no field", session.ErrInvalid)
		}
	}
	return nil
}

func (s *Store) put(e artifact.Entry) {
	s.entries[e.ID] = clone(e)
	if e.Final {
		for _, k := range []any{pathKey{e.SessionID, e.Path()}, fileKey{e.SessionID, e.File}} {
			if !slices.Contains(s.finals[k], e.ID) {
				s.finals[k] = append(s.finals[k], e.ID)
			}
		}
		s.lastSeq[e.SessionID] = max(s.lastSeq[e.SessionID], e.Seq)
	}
}

func (s *Store) renameDir(r artifact.RenameDir) {
	for id, e := range s.entries {
		if e.Final || e.SessionID != r.SessionID {
			continue
		}
		e = clone(e)
		for i, n := range e.Names {
			if rest, below := strings.CutPrefix(n, r.From+"/"); below {
				e.Names[i] = r.To + "/" + rest
			}
		}
		s.entries[id] = e
	}
}

// Entry returns one entry.
func (s *Store) Entry(_ context.Context, id string) (artifact.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return artifact.Entry{}, fmt.Errorf("artifact %q: %w", id, session.ErrNotFound)
	}
	return clone(e), nil
}

// OpenEntries returns what is not final in a session.
func (s *Store) OpenEntries(_ context.Context, sessionID string) ([]artifact.Entry, error) {
	open := s.selected(func(e artifact.Entry) bool { return !e.Final && e.SessionID == sessionID })
	slices.SortFunc(open, func(a, b artifact.Entry) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return open, nil
}

// Entries returns final entries in order of Seq.
func (s *Store) Entries(_ context.Context, q artifact.Query) ([]artifact.Entry, error) {
	found := s.final(q.SessionID, func(e artifact.Entry) bool { return matches(e, q) })
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, nil
}

func matches(e artifact.Entry, q artifact.Query) bool {
	return e.Seq > q.From &&
		(len(q.Executions) == 0 || slices.Contains(q.Executions, e.Who.ExecutionID)) &&
		(q.ToolUseID == "" || e.Who.ToolUseID == q.ToolUseID) &&
		(!q.ArtifactsOnly || e.Artifact && !e.Removed)
}

// EntriesOf returns the final entries of one inode.
func (s *Store) EntriesOf(_ context.Context, sessionID string, f change.FileID) ([]artifact.Entry, error) {
	return s.finalOf(fileKey{sessionID, f}, func(e artifact.Entry) bool { return e.SessionID == sessionID && e.File == f }), nil
}

// Versions returns the final entries of one path.
func (s *Store) Versions(_ context.Context, sessionID, path string) ([]artifact.Entry, error) {
	return s.finalOf(pathKey{sessionID, path}, func(e artifact.Entry) bool { return e.SessionID == sessionID && e.Path() == path }), nil
}

// ArtifactsBelow returns the latest artifact of each path below dir.
func (s *Store) ArtifactsBelow(_ context.Context, sessionID, dir string, limit int) ([]artifact.Entry, error) {
	latest := map[string]artifact.Entry{}
	for _, e := range s.final(sessionID, func(e artifact.Entry) bool {
		return e.Artifact && !e.Removed && strings.HasPrefix(e.Path(), dir+"/")
	}) {
		latest[e.Path()] = e
	}
	found := slices.Collect(maps.Values(latest))
	return found[:min(limit, len(found))], nil
}

// LastSeq returns the greatest sequence number given in the session.
func (s *Store) LastSeq(_ context.Context, sessionID string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastSeq[sessionID], nil
}

// Sync counts its calls: see Syncs.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	return nil
}

// Syncs returns how often Sync was called.
func (s *Store) Syncs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs
}

func (s *Store) final(sessionID string, keep func(artifact.Entry) bool) []artifact.Entry {
	found := s.selected(func(e artifact.Entry) bool {
		return e.Final && e.SessionID == sessionID && keep(e)
	})
	slices.SortFunc(found, func(a, b artifact.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return found
}

// finalOf returns the entries that finals has under k, as far as they are still so.
func (s *Store) finalOf(k any, keep func(artifact.Entry) bool) (found []artifact.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.finals[k] {
		if e, ok := s.entries[id]; ok && e.Final && keep(e) {
			found = append(found, clone(e))
		}
	}
	slices.SortFunc(found, func(a, b artifact.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return found
}

func (s *Store) selected(keep func(artifact.Entry) bool) []artifact.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []artifact.Entry
	for _, e := range s.entries {
		if keep(e) {
			found = append(found, clone(e))
		}
	}
	return found
}

// clone unshares the names. Who.Candidates and Who.Artifact are never changed by anybody.
func clone(e artifact.Entry) artifact.Entry {
	e.Names = slices.Clone(e.Names)
	return e
}
