package attribution

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const (
	maxWatched  = 16384                  // processes watched by descriptor; more are looked at now and then
	maxPerUse   = 64                     // processes watched of one tool use
	lookAgain   = 5 * time.Second        // how often processes without a descriptor are looked at
	grace       = 500 * time.Millisecond // see Watcher
	graceRounds = 8                      // how often a grace is checked for
)

// Watcher tells when the last process that was seen carrying a declared tool use is gone.
//
// A process counts from when it was seen until it exits, whatever it executes in between. What
// descends from it and has written nothing is not known, so a tool use ends only when a short
// grace after the last exit has brought nobody new (a shell that exits before the command it leaves
// behind writes). It is safe for concurrent use.
type Watcher struct {
	gone  func(sessionID, id string)
	log   *slog.Logger
	grace time.Duration
	epoll int
	wake  int // eventfd: the loop is to end

	mu     sync.Mutex // guards all below
	uses   map[useKey]*watched
	byProc map[session.Process]*carrier
	byFD   map[int]*carrier
	closed bool
	ended  sync.WaitGroup
}

type useKey struct{ session, id string }

// watched is a tool use that is watched.
type watched struct {
	procs  int       // processes that carry it and live
	goneAt time.Time // when the last one exited; zero while procs is not
}

// carrier is a living process and what it was seen carrying.
type carrier struct {
	process session.Process
	fd      int // pidfd, -1 where it is looked at now and then
	uses    map[useKey]struct{}
}

// NewWatcher starts a watcher that calls gone, from one goroutine, once for each time that the last
// process carrying a tool use is gone. It is closed by its maker.
func NewWatcher(gone func(sessionID, id string), log *slog.Logger) (*Watcher, error) {
	return newWatcher(gone, log, grace)
}
