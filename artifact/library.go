package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Library shows and changes the entries of all sessions. A session with a live mount is attached;
// of others the entries stand as the Store has them, and their files are looked for in the tree
// that the configured source gives.
type Library struct {
	store    Store
	sessions Sessions
	source   Source
	log      *slog.Logger

	mu   sync.Mutex       // guards all below
	live map[string]shelf // by session
}

// Source opens the tree that a session's last mount served, for sessions without a live one. It
// is session.ErrNotFound or another error where that cannot be had. The tree is opened for one call,
// which ends with done: an open tree holds descriptors and its file system.
type Source func(sessionID string) (tree Tree, done func(), err error)

// shelf is where one session's entries and files are. Each call that shows entries has its own.
type shelf struct {
	recorder *Recorder // nil without a live mount
	tree     Tree      // nil where there is none
	rules    *Rules
	reason   string // why there is no tree
	pass     *pass  // over rules, made when the first open entry is evaluated
	done     func() // closes tree where it was opened for this call; nil otherwise
}

// close ends the use of a shelf.
func (s *shelf) close() {
	if s.done != nil {
		s.done()
	}
}

// NewLibrary returns a library without attached sessions. source may be nil: the files of a
// session are lost then while it has no live mount.
func NewLibrary(store Store, sessions Sessions, source Source, log *slog.Logger) *Library {
	return &Library{store: store, sessions: sessions, source: source, log: log,
		live: map[string]shelf{}}
}

// Attach makes a live mount's recorder and tree known.
func (l *Library) Attach(sessionID string, r *Recorder, tree Tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[sessionID] = shelf{recorder: r, tree: tree, rules: r.rules}
}

// Detach forgets them. Call it before the recorder is closed.
func (l *Library) Detach(sessionID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, sessionID)
}

// shelf returns where the session's entries and files are. Whoever asked closes it.
func (l *Library) shelf(sessionID string) *shelf {
	l.mu.Lock()
	s, ok := l.live[sessionID]
	l.mu.Unlock()
	switch {
	case ok:
		return &s
	case l.source == nil:
		return &shelf{reason: "the session has no live mount"}
	}
	tree, done, err := l.source(sessionID)
	if err != nil {
		return &shelf{reason: "the session has no live mount, and its source cannot be opened: " + reasonOf(err)}
	}
	return &shelf{tree: tree, rules: NewRules(tree, l.log), done: done}
}

// recorder returns the live recorder of a session, nil for none.
func (l *Library) recorder(sessionID string) *Recorder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[sessionID].recorder
}

// recorders returns the live recorders.
func (l *Library) recorders() []*Recorder {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Recorder, 0, len(l.live))
	for _, s := range l.live {
		all = append(all, s.recorder)
	}
	return all
}

// Show returns one entry, final or open.
func (l *Library) Show(ctx context.Context, id string) (View, error) {
	e, err := l.entry(ctx, id)
	if err != nil {
		return View{}, err
	}
	s := l.shelf(e.SessionID)
	defer s.close()
	return l.view(s, e), nil
}

// entry returns an entry as it is recorded now, with everything that happened so far.
func (l *Library) entry(ctx context.Context, id string) (Entry, error) {
	for _, r := range l.recorders() {
		if e, ok := r.unwritten(id); ok {
			return e, nil
		}
	}
	e, err := l.store.Entry(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	if r := l.recorder(e.SessionID); r != nil && !e.Final {
		// It was open in the index and not in memory: it went between the two looks, or its row is
		// about to.
		if err := r.Flush(ctx); err != nil {
			return Entry{}, err
		}
		return l.store.Entry(ctx, id)
	}
	return e, nil
}

// unwritten returns an entry that is open, or final and not in the Store yet, after all events
// recorded so far.
func (r *Recorder) unwritten(id string) (Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drainLocked()
	for _, e := range r.pending.finals {
		if e.ID == id {
			return e, true
		}
	}
	e := r.open.entries[id]
	if e == nil || len(e.names) == 0 {
		return Entry{}, false
	}
	return e.snapshot(), true
}

// view derives the state of an entry, and of an open one what stands now.
func (l *Library) view(s *shelf, e Entry) View {
	v := View{Entry: e, State: Lost}
	switch {
	case e.LostReason != "":
		return v
	case s.tree == nil:
		v.LostReason = s.reason
		return v
	}
	id, stamp, err := s.tree.Stat(e.Path())
	v.State = stateOf(e, id, stamp, err)
	if v.State == Lost {
		v.LostReason = reasonOf(err)
	}
	if !e.Final {
		l.evaluate(s, &v, stamp)
		if errors.Is(err, fs.ErrInvalid) {
			v.State = noFile
		}
	}
	return v
}

// noFile is the state of an open entry whose name turned out to be a symbolic link, a pipe or the
// like that was renamed or linked: it is not shown, and dropped when it would become final.
const noFile State = ""

func stateOf(e Entry, id change.FileID, stamp change.Stamp, err error) State {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return Deleted // nothing there, or no regular file
	case err != nil:
		return Lost
	case !sameFile(id, e.File), e.Final && stamp != e.Stamp:
		return Replaced
	}
	return Live
}

// evaluate fills in what an open entry would be final with now.
func (l *Library) evaluate(s *shelf, v *View, stamp change.Stamp) {
	if v.State == Live {
		v.Stamp = stamp
	}
	v.MimeType = typeByName(v.Path())
	if v.Reason == ReasonAdded {
		v.Artifact = true
		return
	}
	if s.pass == nil {
		s.pass = s.rules.pass()
	}
	x, _ := l.sessions.ExecutionOf(v.SessionID, v.Who.ExecutionID)
	d := s.pass.decide(v.Path(), v.Who.Artifact, x.Artifacts)
	v.Artifact, v.Reason = d.Artifact, d.Reason
}

// Versions returns the final artifacts of a path, oldest first, removed ones too.
func (l *Library) Versions(ctx context.Context, sessionID, path string) ([]View, error) {
	s := l.shelf(sessionID)
	defer s.close()
	if s.recorder != nil {
		if err := s.recorder.Flush(ctx); err != nil {
			return nil, err
		}
	}
	entries, err := l.store.Versions(ctx, sessionID, path)
	if err != nil {
		return nil, fmt.Errorf("versions: %w", err)
	}
	views := []View{}
	for _, e := range entries {
		if e.Version > 0 {
			views = append(views, l.view(s, e))
		}
	}
	return views, nil
}

// Finalise makes an entry final where it is not and returns it. An open entry's tool use may go
// on: what it writes then is another entry.
func (l *Library) Finalise(ctx context.Context, id string) (Entry, error) {
	e, err := l.settled(ctx, id)
	if err != nil || e.Final {
		return e, err
	}
	r := l.recorder(e.SessionID)
	if r == nil {
		return Entry{}, fmt.Errorf("artifact %s is not final and its session has no live mount: mount it first: %w", id, session.ErrConflict)
	}
	if err := r.finish(ctx, func(o *openEntry) bool { return o.ID == id }); err != nil {
		return Entry{}, err
	}
	return l.store.Entry(ctx, id)
}
