package artifact

import (
	"sync"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// queue holds events that are not applied yet, in order. Writes that follow each other, with
// nothing but writes between them, are one event where file, name and writer are the same: a
// loop that writes one file takes one place however far behind the recorder is.
type queue struct {
	signal chan struct{} // capacity one: there is something to take

	mu     sync.Mutex // guards all below
	events []change.Event
	writes map[writeKey]int // index in events of the writes since the last other event
	spare  []change.Event   // what take returned last, empty
}

// maxSpare is how many events are kept room for.
const maxSpare = 1024

type writeKey struct {
	file      change.FileID
	path      string
	execution string
	toolUse   string
	sureness  session.Sureness
	late      bool
}

func newQueue() queue {
	return queue{signal: make(chan struct{}, 1), writes: map[writeKey]int{}}
}

func (q *queue) push(e change.Event) {
	q.mu.Lock()
	if !q.coalesce(e) {
		q.events = append(q.events, e)
	}
	q.mu.Unlock()
	signal(q.signal)
}

func (q *queue) coalesce(e change.Event) bool {
	if e.Kind != change.Write {
		clear(q.writes)
		return false
	}
	k := writeKey{e.File, e.Path, e.Who.ExecutionID, e.Who.ToolUseID, e.Who.Sureness, e.Who.Late}
	if i, known := q.writes[k]; known {
		q.events[i].Stamp = e.Stamp
		q.events[i].Who = merge(q.events[i].Who, e.Who)
		return true
	}
	q.writes[k] = len(q.events)
	return false
}

// take returns all events and leaves none. The caller gives the slice back when it is done with it.
func (q *queue) take() []change.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events, q.spare = q.spare, nil
	if len(q.writes) > 0 {
		q.writes = map[writeKey]int{}
	}
	return events
}

// giveBack takes a slice for use again, unless a burst made it large.
func (q *queue) giveBack(events []change.Event) {
	clear(events)
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(events) <= maxSpare {
		q.spare = events[:0]
	}
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}
