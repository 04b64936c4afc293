package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// OpenSession makes the session of a mount, or opens it again: then its owner must be the same, its
// source and default of artifacts become those of s. A session that has a live mount or another
// owner is ErrConflict.
func (c *Controller) OpenSession(ctx context.Context, s Session) (Session, error) {
	if err := CheckID("session", s.ID); err != nil {
		return Session{}, err
	}
	l := c.reserveSession(s.ID)
	// Refuse without the lock where that is clear already: waiting for it holds up who begins
	// something in the session.
	if err := c.openable(l, s); err != nil {
		return Session{}, err
	}
	l.ops.Lock()
	defer l.ops.Unlock()
	if err := c.openable(l, s); err != nil {
		return Session{}, err
	}
	if err := c.rebind(ctx, l); err != nil {
		return Session{}, fmt.Errorf("open session %s: %w", s.ID, err)
	}
	s.CreatedAt = l.CreatedAt
	if s.CreatedAt.IsZero() {
		s.CreatedAt = c.now()
	}
	if err := c.store.PutSession(ctx, s); err != nil {
		c.dropIfNew(l)
		return Session{}, fmt.Errorf("open session %s: %w", s.ID, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.Session = s
	return s, nil
}

// reserveSession returns the session in memory. A new one has no time of creation and is seen by
// nobody.
func (c *Controller) reserveSession(id string) *live {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.sessions[id]
	if l == nil {
		l = newLive(Session{ID: id})
		c.sessions[id] = l
	}
	return l
}

func (c *Controller) openable(l *live, s Session) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch {
	case l.deleting || c.sessions[s.ID] != l:
		return fmt.Errorf("%w: session %s is being deleted: try again", ErrConflict, s.ID)
	case l.collector != nil:
		return fmt.Errorf("%w: session %s already has a live mount: unmount it, or name another session", ErrConflict, s.ID)
	case l.known() && l.Owner != s.Owner:
		return fmt.Errorf("%w: session %s belongs to uid %d and not to %d: name another session, or give the owner", ErrConflict, s.ID, l.Owner, s.Owner)
	}
	return nil
}

func (c *Controller) dropIfNew(l *live) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.known() {
		delete(c.sessions, l.ID)
	}
}

// known reports whether the session is in the store. mu is held.
func (l *live) known() bool { return !l.CreatedAt.IsZero() }

// AttachMount says that the session has a live mount whose recorder is collector. A session has one
// at most: another one is ErrConflict.
func (c *Controller) AttachMount(sessionID string, collector Collector) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.sessions[sessionID]
	switch {
	case l == nil || !l.known() || l.deleting:
		return noSession(sessionID)
	case l.collector != nil:
		return fmt.Errorf("%w: session %s already has a live mount: unmount it, or name another session", ErrConflict, sessionID)
	}
	l.collector = collector
	return nil
}

// DetachMount says that the session's mount is gone.
func (c *Controller) DetachMount(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.sessions[sessionID]; l != nil {
		l.collector = nil
	}
}

// Session returns one session.
func (c *Controller) Session(_ context.Context, caller Caller, id string) (Session, error) {
	l, err := c.find(caller, id, wanted{})
	if err != nil {
		return Session{}, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return l.Session, nil
}

// Sessions returns what the caller may see, in order of creation.
func (c *Controller) Sessions(_ context.Context, caller Caller) ([]Session, error) {
	all := []Session{}
	c.mu.RLock()
	for _, l := range c.sessions {
		if l.visible(caller) {
			all = append(all, l.Session)
		}
	}
	c.mu.RUnlock()
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// DeleteSession removes a session with all that belongs to it. It must be named. One with a live
// mount is ErrConflict.
func (c *Controller) DeleteSession(ctx context.Context, caller Caller, id string) error {
	if id == "" {
		return fmt.Errorf("%w: name the session to delete", ErrInvalid)
	}
	l, err := c.find(caller, id, wanted{})
	if err != nil {
		return err
	}
	if err := c.setDeleting(l); err != nil {
		return err
	}
	l.ops.Lock() // waits for what is under way
	defer l.ops.Unlock()
	err = c.store.DeleteSession(context.WithoutCancel(ctx), id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !errors.Is(err, ErrNotFound) {
		l.deleting = false
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	delete(c.sessions, id)
	c.unbindSession(id)
	return nil
}

func (c *Controller) setDeleting(l *live) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case l.collector != nil:
		return fmt.Errorf("%w: session %s has a live mount: unmount it first", ErrConflict, l.ID)
	case l.deleting:
		return noSession(l.ID)
	}
	l.deleting = true
	return nil
}
