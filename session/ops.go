package session

// enter lets a begin or an end into l until leave is called. A session that was deleted while it waited
// is ErrNotFound: nothing may be put into the store for it any more.
func (c *Controller) enter(l *live) (leave func(), err error) {
	l.ops.RLock()
	c.mu.RLock()
	gone := l.deleting || c.sessions[l.ID] != l
	c.mu.RUnlock()
	if gone {
		l.ops.RUnlock()
		return nil, noSession(l.ID)
	}
	return l.ops.RUnlock, nil
}
