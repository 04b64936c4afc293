package artifact

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// listPage is how many final entries are read at a time.
const listPage = 512

// List returns the final entries in order of Seq, then the open ones in order of creation.
//
// By default what can be had: artifacts whose file is live, and those of a session whose files
// cannot be looked at as a whole. All adds replaced, deleted, lost and removed ones; Writes lists
// every recorded write whatever became of it, artifact or not, and implies All; what became of final
// plain writes is not looked up, their State is empty. After a limited
// answer NextFrom goes on; open entries come with the last page.
func (l *Library) List(ctx context.Context, q ListQuery) (Listing, error) {
	s := l.shelf(q.SessionID)
	defer s.close()
	query := Query{SessionID: q.SessionID, ToolUseID: q.ToolUseID, From: q.From, ArtifactsOnly: !q.Writes && !q.All}
	if q.ExecutionID != "" {
		query.Executions = []string{q.ExecutionID}
		if !q.NoForks {
			query.Executions = append(query.Executions, l.sessions.Forks(q.SessionID, q.ExecutionID)...)
		}
	}
	unwritten, upTo, err := l.snapshot(ctx, s, q.SessionID)
	if err != nil {
		return Listing{}, fmt.Errorf("list artifacts: %w", err)
	}
	out := Listing{Views: []View{}}
	full, err := l.listFinal(ctx, s, q, query, upTo, &out)
	if err != nil {
		return Listing{}, fmt.Errorf("list artifacts: %w", err)
	}
	if !full {
		l.listUnwritten(s, q, query, unwritten, &out)
	}
	return out, nil
}

// snapshot returns what makes a list one moment's: the entries that are open then, before them
// final ones that the Store does not have yet, and the greatest sequence number given until then.
func (l *Library) snapshot(ctx context.Context, s *shelf, sessionID string) (unwritten []Entry, upTo uint64, err error) {
	if s.recorder != nil {
		unwritten, upTo = s.recorder.snapshot(ctx)
		return unwritten, upTo, nil
	}
	open, err := l.store.OpenEntries(ctx, sessionID)
	return open, math.MaxUint64, err
}

// snapshot also works where the index cannot be written: what it should have comes from memory then.
func (r *Recorder) snapshot(ctx context.Context) (unwritten []Entry, upTo uint64) {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.flush(ctx); err != nil {
		r.log.Warn("cannot write to the index: what is not in it is listed from memory", keyError, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var open []Entry
	for _, e := range r.open.entries {
		if len(e.names) > 0 {
			open = append(open, e.snapshot())
		}
	}
	slices.SortFunc(open, byCreation)
	return append(slices.Clone(r.pending.finals), open...), r.seq
}

// listFinal reports full where the limit was reached before the end.
func (l *Library) listFinal(ctx context.Context, s *shelf, q ListQuery, query Query, upTo uint64, out *Listing) (full bool, err error) {
	query.Limit = listPage
	for {
		page, err := l.store.Entries(ctx, query)
		if err != nil {
			return false, err
		}
		for _, e := range page {
			if e.Seq > upTo {
				break
			}
			v := View{Entry: e}
			if e.Artifact || !q.Writes {
				v = l.view(s, e)
			}
			if wanted(s, q, v) {
				if q.Limit > 0 && len(out.Views) == q.Limit {
					return true, nil
				}
				out.Views = append(out.Views, v)
				out.NextFrom = e.Seq
			}
		}
		if len(page) < listPage || page[len(page)-1].Seq > upTo {
			out.NextFrom = 0
			return false, nil
		}
		query.From = page[len(page)-1].Seq
	}
}

// listUnwritten adds the open entries that match. They have no number to go on from, so a limit
// does not cut them.
func (l *Library) listUnwritten(s *shelf, q ListQuery, query Query, unwritten []Entry, out *Listing) {
	for _, e := range unwritten {
		if e.Final && e.Seq <= q.From || len(query.Executions) > 0 && !slices.Contains(query.Executions, e.Who.ExecutionID) ||
			q.ToolUseID != "" && e.Who.ToolUseID != q.ToolUseID {
			continue
		}
		if v := l.view(s, e); wanted(s, q, v) {
			out.Views = append(out.Views, v)
		}
	}
}

func wanted(s *shelf, q ListQuery, v View) bool {
	switch {
	case !v.Final && v.State == noFile:
		return false
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
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
}
