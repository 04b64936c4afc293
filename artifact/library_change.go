package artifact

import (
	"context"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"aimon.at/vfsd/change"

	"github.com/oklog/ulid/v2"

	"aimon.at/vfsd/session"
)

// Add makes the file at path an artifact by hand. The entry that the file's content is recorded in
// becomes one and keeps its attribution; where there is none, a final one is made: declared for
// toolUseID, nobody's for "".
func (l *Library) Add(ctx context.Context, sessionID, path, toolUseID string) (View, error) {
	if !strings.HasPrefix(path, "/") || pathpkg.Clean(path) != path || path == "/" {
		return View{}, fmt.Errorf("%w path %q: give a file's path from the mount's root", session.ErrInvalid, path)
	}
	s := l.shelf(sessionID)
	defer s.close()
	if s.recorder == nil {
		return View{}, fmt.Errorf("session %s has no live mount: mount it to add artifacts: %w", sessionID, session.ErrConflict)
	}
	e, err := s.recorder.add(ctx, path, toolUseID)
	if err != nil {
		shown, _ := change.EscapePath(path)
		return View{}, fmt.Errorf("add %s: %w", shown, err)
	}
	return l.view(s, e), nil
}

// errNeedsExecution says that a file has no entry yet and where a new one is collected is not known.
var errNeedsExecution = errors.New("needs an execution")

func (r *Recorder) add(ctx context.Context, path, toolUseID string) (Entry, error) {
	e, err := r.addIn(ctx, path, session.Attribution{})
	if !errors.Is(err, errNeedsExecution) {
		return e, err
	}
	// Without storing: this may wait for an end, which waits for storing in turn.
	execution, err := r.cfg.Sessions.CollectInto(r.sessionID, toolUseID)
	if err != nil {
		return Entry{}, err
	}
	who := session.Attribution{Sureness: session.None, ExecutionID: execution}
	if toolUseID != "" {
		who.Sureness, who.ToolUseID = session.Declared, toolUseID
	}
	return r.addIn(ctx, path, who)
}

// addIn is errNeedsExecution where the entry has to be made and who names no execution.
func (r *Recorder) addIn(ctx context.Context, path string, who session.Attribution) (Entry, error) {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.flush(ctx); err != nil {
		return Entry{}, err
	}
	e, err := r.statEntry(path)
	if err != nil {
		return Entry{}, err
	}
	if open, ok := r.addOpen(e); ok {
		return open, r.flush(ctx)
	}
	earlier, err := r.cfg.Store.Versions(ctx, r.sessionID, path)
	if err != nil {
		return Entry{}, err
	}
	for _, f := range earlier {
		if f.File == e.File && f.Stamp == e.Stamp {
			e = f
		}
	}
	if !e.Final {
		if who.ExecutionID == "" {
			return Entry{}, errNeedsExecution
		}
		e = r.byHand(e, who)
	}
	e.Artifact, e.Reason, e.Removed = true, ReasonAdded, false
	return r.putByHand(ctx, e)
}

// statEntry returns an entry with what the file at path is like.
func (r *Recorder) statEntry(path string) (Entry, error) {
	f, err := r.cfg.Tree.Open(path)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", session.ErrNotFound, err)
	}
	defer f.Close()
	e := Entry{SessionID: r.sessionID, Names: []string{path}, OpenAtEnd: f.Writable()}
	e.File, e.Stamp, err = f.Stat()
	e.MimeType = sniff(f, e.Stamp.Size, path)
	return e, err
}

// addOpen declares the file's open entry at that path an artifact, the one changed last where
// there are several.
func (r *Recorder) addOpen(e Entry) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.open.names.find(e.Path())
	if n == nil || n.file == nil || n.file.id != e.File {
		return Entry{}, false
	}
	last := n.file.entries[0]
	for _, o := range n.file.entries {
		if !o.changed.Before(last.changed) {
			last = o
		}
	}
	last.Artifact, last.Reason, last.Removed = true, ReasonAdded, false
	r.changed(last)
	return last.snapshot(), true
}

// byHand completes the final entry of a file that nobody was seen writing. Its number is not given to
// another one where the Store fails: it may have it all the same.
func (r *Recorder) byHand(e Entry, who session.Attribution) Entry {
	now := r.now()
	r.seq++
	e.Who, e.ID, e.Final, e.Seq, e.CreatedAt, e.FinalAt = who, ulid.Make().String(), true, r.seq, now, now
	return e
}

// putByHand writes a final entry and what it implies. storing is held.
func (r *Recorder) putByHand(ctx context.Context, e Entry) (Entry, error) {
	if err := r.putFinal(ctx, e); err != nil {
		return Entry{}, err
	}
	r.mu.Lock()
	r.finals.add(e)
	r.mu.Unlock()
	if err := r.cfg.Store.Sync(); err != nil {
		return Entry{}, fmt.Errorf("sync the index: %w", err)
	}
	return r.cfg.Store.Entry(ctx, e.ID)
}

// Remove takes an entry out of the artifacts, durably. Its file and its record stay; its links are good
// for nothing (Tokens.Redeem), while Open goes on giving its bytes to who may see it.
func (l *Library) Remove(ctx context.Context, id string) (View, error) {
	e, err := l.entry(ctx, id)
	if err != nil {
		return View{}, err
	}
	s := l.shelf(e.SessionID)
	defer s.close()
	if s.recorder != nil {
		e, err = s.recorder.remove(ctx, id)
	} else {
		e.Removed = true
		err = l.store.Apply(ctx, []Mutation{{Put: &e}})
	}
	if err == nil {
		err = l.store.Sync()
	}
	if err != nil {
		return View{}, fmt.Errorf("remove artifact %s: %w", id, err)
	}
	return l.view(s, e), nil
}

func (r *Recorder) remove(ctx context.Context, id string) (Entry, error) {
	r.storing.Lock()
	defer r.storing.Unlock()
	r.mu.Lock()
	r.drainLocked()
	if o := r.open.entries[id]; o != nil {
		o.Removed = true
		r.changed(o)
		e := o.snapshot()
		r.mu.Unlock()
		return e, r.flush(ctx)
	}
	r.mu.Unlock()
	if err := r.flush(ctx); err != nil {
		return Entry{}, err
	}
	e, err := r.cfg.Store.Entry(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	e.Removed = true
	return e, r.putFinal(ctx, e)
}
