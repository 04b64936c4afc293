package artifact

import (
	"context"
	"fmt"
	"slices"
)

// listPage is how many final entries are read at a time.
const listPage = 512

// List returns the final entries in order of Seq, then the open ones in order of creation.
//
// By default what can be had: artifacts whose file is live, and those of a session whose files
// cannot be looked at as a whole. All adds replaced, deleted, lost and removed ones; Writes lists
// every recorded write whatever became of it, artifact or not, and implies All. After a limited
// answer NextFrom goes on; open entries come with the last page.
func (l *Library) List(ctx context.Context, q ListQuery) (Listing, error) {
	s := l.shelf(q.SessionID)
	query := Query{SessionID: q.SessionID, ToolUseID: q.ToolUseID, From: q.From, ArtifactsOnly: !q.Writes && !q.All}
	if q.ExecutionID != "" {
		query.Executions = []string{q.ExecutionID}
		if !q.NoForks {
			query.Executions = append(query.Executions, l.sessions.Forks(q.SessionID, q.ExecutionID)...)
		}
	}
	out := Listing{Views: []View{}}
	err := l.snapshot(ctx, s, q.SessionID, func(open []Entry) error {
		full, err := l.listFinal(ctx, s, q, query, &out)
		if err != nil || full {
			return err
		}
		l.listOpen(s, q, query, open, &out)
		return nil
	})
	if err != nil {
		return Listing{}, fmt.Errorf("list artifacts: %w", err)
	}
	return out, nil
}

// snapshot calls f with the open entries while none of them can become final.
func (l *Library) snapshot(ctx context.Context, s shelf, sessionID string, f func(open []Entry) error) error {
	if s.recorder != nil {
		return s.recorder.snapshot(ctx, f)
	}
	open, err := l.store.OpenEntries(ctx, sessionID)
	if err != nil {
		return err
	}
	return f(open)
}

func (r *Recorder) snapshot(ctx context.Context, f func(open []Entry) error) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	open := make([]Entry, 0, len(r.open.entries))
	for _, e := range r.open.entries {
		if len(e.names) > 0 {
			open = append(open, e.snapshot())
		}
	}
	r.mu.Unlock()
	slices.SortFunc(open, byCreation)
	return f(open)
}

// listFinal reports full where the limit was reached before the end.
func (l *Library) listFinal(ctx context.Context, s shelf, q ListQuery, query Query, out *Listing) (full bool, err error) {
	query.Limit = listPage
	for {
		page, err := l.store.Entries(ctx, query)
		if err != nil {
			return false, err
		}
		for _, e := range page {
			if v := l.view(s, e); l.wanted(s, q, v) {
				if q.Limit > 0 && len(out.Views) == q.Limit {
					return true, nil
				}
				out.Views = append(out.Views, v)
				out.NextFrom = e.Seq
			}
		}
		if len(page) < listPage {
			out.NextFrom = 0
			return false, nil
		}
		query.From = page[len(page)-1].Seq
	}
}

// listOpen adds the open entries that match. They have no number to go on from, so a limit does
// not cut them.
func (l *Library) listOpen(s shelf, q ListQuery, query Query, open []Entry, out *Listing) {
	for _, e := range open {
		if len(query.Executions) > 0 && !slices.Contains(query.Executions, e.Who.ExecutionID) ||
			q.ToolUseID != "" && e.Who.ToolUseID != q.ToolUseID {
			continue
		}
		if v := l.view(s, e); l.wanted(s, q, v) {
			out.Views = append(out.Views, v)
		}
	}
}

func (l *Library) wanted(s shelf, q ListQuery, v View) bool {
	switch {
	case q.Writes:
		return true
	case !v.Artifact && !v.Removed:
		return false
	case q.All:
		return true
	}
	return v.Artifact && !v.Removed && (v.State == Live || s.tree == nil && v.Entry.LostReason == s.reason)
}

func byCreation(a, b Entry) int {
	if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
		return c
	}
	if a.ID < b.ID {
		return -1
	}
	return 1
}
