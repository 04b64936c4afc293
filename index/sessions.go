package index

import (
	"context"
	"unicode/utf8"

	"github.com/dgraph-io/badger/v4"

	"aimon.at/vfsd/session"
)

type sessionRow struct {
	session.Session
	// RawSource stands for a source that is not UTF-8, which JSON would change.
	RawSource []byte `json:"rawSource,omitempty"`
}

func sessionKey(id string) key { return newKey(kindSession).text(id) }

func (r *sessionRow) key() key { return sessionKey(r.ID) }
func (r *sessionRow) secondary() []key {
	return []key{newKey(kindSessionTime).time(r.CreatedAt).text(r.ID)}
}

func (r *sessionRow) value() session.Session {
	if r.RawSource != nil {
		r.Source = string(r.RawSource)
	}
	return r.Session
}

type executionRow struct{ session.Execution }

func executionKey(sessionID, id string) key { return under(kindExecution, sessionID).text(id) }

func (r *executionRow) key() key { return executionKey(r.SessionID, r.ID) }
func (r *executionRow) secondary() []key {
	keys := []key{under(kindExecutionTime, r.SessionID).time(r.BeganAt).text(r.ID)}
	if !r.Status.Ended() {
		keys = append(keys, under(kindExecutionOpen, r.SessionID).time(r.BeganAt).text(r.ID))
	}
	return keys
}

type toolUseRow struct{ session.ToolUse }

func toolUseKey(sessionID, id string) key { return under(kindToolUse, sessionID).text(id) }

func (r *toolUseRow) key() key { return toolUseKey(r.SessionID, r.ID) }
func (r *toolUseRow) secondary() []key {
	keys := []key{under(kindToolUseTime, r.SessionID).time(r.BeganAt).text(r.ID)}
	if r.Open() {
		keys = append(keys, under(kindToolUseOpen, r.SessionID).time(r.BeganAt).text(r.ID))
	}
	return keys
}

// PutSession implements session.Store.
func (x *Index) PutSession(ctx context.Context, s session.Session) error {
	r := &sessionRow{Session: s}
	if !utf8.ValidString(s.Source) {
		r.Source, r.RawSource = "", []byte(s.Source)
	}
	return x.putRow(ctx, r)
}

// Session implements session.Store.
func (x *Index) Session(ctx context.Context, id string) (session.Session, error) {
	r, err := one[*sessionRow](ctx, x, sessionKey(id), "session", id)
	if err != nil {
		return session.Session{}, err
	}
	return r.value(), nil
}

// Sessions implements session.Store.
func (x *Index) Sessions(ctx context.Context) ([]session.Session, error) {
	return list(ctx, x, newKey(kindSessionTime), (*sessionRow).value)
}

// PutExecution implements session.Store.
func (x *Index) PutExecution(ctx context.Context, e session.Execution) error {
	return x.putRow(ctx, &executionRow{e})
}

// Execution implements session.Store.
func (x *Index) Execution(ctx context.Context, sessionID, id string) (session.Execution, error) {
	r, err := one[*executionRow](ctx, x, executionKey(sessionID, id), "execution", id)
	if err != nil {
		return session.Execution{}, err
	}
	return r.Execution, nil
}

// Executions implements session.Store.
func (x *Index) Executions(ctx context.Context, sessionID string) ([]session.Execution, error) {
	return x.executions(ctx, kindExecutionTime, sessionID)
}

// OpenExecutions implements session.Store.
func (x *Index) OpenExecutions(ctx context.Context, sessionID string) ([]session.Execution, error) {
	return x.executions(ctx, kindExecutionOpen, sessionID)
}

func (x *Index) executions(ctx context.Context, kind byte, sessionID string) ([]session.Execution, error) {
	return list(ctx, x, under(kind, sessionID), func(r *executionRow) session.Execution { return r.Execution })
}

// PutToolUse implements session.Store.
func (x *Index) PutToolUse(ctx context.Context, t session.ToolUse) error {
	return x.putRow(ctx, &toolUseRow{t})
}

// ToolUse implements session.Store.
func (x *Index) ToolUse(ctx context.Context, sessionID, id string) (session.ToolUse, error) {
	r, err := one[*toolUseRow](ctx, x, toolUseKey(sessionID, id), "tool use", id)
	if err != nil {
		return session.ToolUse{}, err
	}
	return r.ToolUse, nil
}

// ToolUses implements session.Store.
func (x *Index) ToolUses(ctx context.Context, sessionID string, openOnly bool) ([]session.ToolUse, error) {
	kind := byte(kindToolUseTime)
	if openOnly {
		kind = kindToolUseOpen
	}
	return list(ctx, x, under(kind, sessionID), func(r *toolUseRow) session.ToolUse { return r.ToolUse })
}

func (x *Index) putRow(ctx context.Context, r row) error {
	return x.update(ctx, func(tx *badger.Txn) error { return x.put(tx, r) })
}

// one reads the row at k. what and id name it where it is missing.
func one[T row](ctx context.Context, x *Index, k key, what, id string) (r T, err error) {
	err = x.view(ctx, func(tx *badger.Txn) error {
		r, err = loadAs[T](tx, k)
		return err
	})
	return r, missing(err, what, id)
}

// list reads all rows that the secondary rows below prefix lead to.
func list[T row, V any](ctx context.Context, x *Index, prefix key, value func(T) V) ([]V, error) {
	var all []V
	err := x.view(ctx, func(tx *badger.Txn) error {
		return follow(tx, prefix, nil, func(r T) bool {
			all = append(all, value(r))
			return ctx.Err() == nil
		})
	})
	if err == nil {
		err = ctx.Err()
	}
	return all, err
}
