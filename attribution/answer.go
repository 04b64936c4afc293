// Package attribution answers which tool use is behind a process that writes.
//
// # Evidence
//
// In this order, the first that answers wins: the caller's cgroup (exact), its ancestry up to a
// process that a tool use was begun with (exact), VFSD_TOOL_USE_ID in its environment or its
// nearest ancestor's (declared), the one tool use that is open (window). Several open ones make the
// answer ambiguous, none of this makes it none. It never guesses: an answer may be ambiguous or
// none, it may not be wrong.
//
// Innermost wins among what is exact. What lies in a tool use of another session only, declares an id that
// cannot be taken, or hangs on a process between its tool uses is known not to be whichever else is open:
// the window does not name it. Nor does it where the caller is unknown (pid 0: it is outside of this
// pid namespace) or its environment could not be read to its end: then what is open are candidates, even one alone.
//
// # The window
//
// A process that started while another, ended tool use of the API was open may be a leftover of that one, or
// a worker that serves whoever asks. Nothing tells which: where it is on the line of a caller, the window's
// answer is ambiguous between the two. What was there before any tool use is taken for a worker.
//
// Of a variable that stands twice in an environment the first counts, as for getenv. A
// VFSD_TOOL_USE_ID that is no valid id declares nothing, and hides what ancestors declare; unless it is empty, it
// means somebody, so that what is open are candidates only.
//
// # Intervals
//
// Start times have a grain of 10 ms. A child that a process forked in the same tick in which its
// tool use began or ended is ambiguous, unless that was at the edge of a tick: whoever begins or ends a tool use
// with a process and without a cgroup takes the time from NextTick, and keeps the time.Time as it is.
//
// # Limits
//
// An orphan hangs on the init of its pid namespace, which is accounted for, or on a subreaper, which
// the kernel shows to nobody: with a subreaper that serves several tool uses an orphan of an earlier one
// counts by its own start time, and so does a child made with CLONE_PARENT. An environment is what its process was
// executed with. What an ancestor executes after a caller was first looked at does not count; that it executed
// something else between the fork and that look is not seen, since nothing tells when a process called exec.
// Whoever lost its line and cleared its environment is told from nobody.
//
// # Hazards
//
// Everything read from /proc is written by the processes of a hostile tree: it is bounded in size
// and time and never trusted to be well formed.
package attribution

import (
	"time"

	"aimon.at/vfsd/session"
)

// Registry is what the resolver needs to know about tool uses. The session controller implements it.
// All methods are called while a process waits in open(2): they answer from memory, or with one
// index read where they say so, and are safe for concurrent use.
type Registry interface {
	// ByCgroup returns the tool use that the cgroup at path (as in /proc/PID/cgroup) was made for,
	// open or ended, of any session.
	ByCgroup(path string) (session.ToolUse, bool)

	// ByProcess returns the tool uses that were begun with the process p, in order of beginning,
	// open and ended ones (intervals), of any session; none where p was never begun with.
	ByProcess(pid int) []session.ToolUse

	// Window returns the ids of the open tool uses of a session that were begun through the API.
	Window(sessionID string) []string

	// WasOpen returns the tool uses of a session, begun through the API and ended now, that were
	// open at some moment from one time to another.
	WasOpen(sessionID string, from, to time.Time) []session.ToolUse

	// Declared returns the tool use of that id in the session, beginning it (origin environment) where
	// no such id was ever used. An id that has ended comes back ended: it is never begun again.
	// It is an error where the id is not valid or too many declared ones are open.
	Declared(sessionID string, d Declaration) (session.ToolUse, error)

	// Execution returns the execution that a change is collected in: declared, where that is open
	// in the session; else toolUse's, where there is one; else the current one, beginning the
	// implicit one where there is none.
	Execution(sessionID, declared string, toolUse *session.ToolUse) (session.Execution, error)
}

// Declaration is what a process says about itself in its environment.
type Declaration = session.Declaration
