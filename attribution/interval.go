package attribution

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

// A process that serves one tool use after another has intervals, and the start time of its direct
// child on the caller's line says which of them the caller belongs to. The kernel shows start times
// in clock ticks of 10 ms, so a child that started in the tick in which a tool use began or ended
// may belong to it or not. Where a beginning or an end lies exactly on the edge of a tick (see
// NextTick) there is no such doubt.

const (
	tick = time.Second / proc.Ticks

	// edge is how near to the edge of a tick a time is taken to be on it: more than the two clocks can
	// be read apart, less than a caller of the API needs to do anything after its call.
	edge = 20 * time.Microsecond

	// jump is what the wall clock may differ from its course without being taken for set anew.
	jump = time.Millisecond

	// unseen is the doubt about a time from before the clock was watched: the wall clock may have been set
	// since.
	unseen = time.Second
)

// NextTick waits until the kernel's clock tick changes and returns the time at which it did, or where
// ctx ends now. It takes at most 10 ms. A tool use of a process that serves several should begin
// and end at such times: what the process forks before and after is then told apart without doubt.
func NextTick(ctx context.Context) time.Time {
	boot, offset, _ := readClocks()
	at := (boot/int64(tick) + 1) * int64(tick)
	timer := time.NewTimer(time.Duration(at - boot))
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Now().Add(time.Duration(at + offset - time.Now().UnixNano()))
	case <-ctx.Done():
		return time.Now()
	}
}

// clock relates wall time to time since boot.
type clock struct {
	since  int64 // wall time at which it was made, nanoseconds
	offset int64 // wall time less time since boot at that moment, nanoseconds
	last   *atomic.Pointer[reading]
}

// reading is what the clocks said at a moment.
type reading struct {
	at     time.Time // with its monotonic time
	offset int64
	narrow bool
}

func newClock() clock {
	boot, offset, _ := readClocks()
	return clock{since: boot + offset, offset: offset, last: new(atomic.Pointer[reading])}
}

// now is readClocks that asks the kernel only where the wall clock was set, or the machine slept, since it did
// last: else wall time and monotonic time went on side by side.
func (c clock) now() (offset int64, narrow bool) {
	at := time.Now()
	if r := c.last.Load(); r != nil && r.narrow {
		apart := at.UnixNano() - r.at.UnixNano() - int64(at.Sub(r.at))
		if apart <= int64(edge)/4 && apart >= -int64(edge)/4 {
			return r.offset, true
		}
	}
	_, offset, narrow = readClocks()
	c.last.Store(&reading{at: at, offset: offset, narrow: narrow})
	return offset, narrow
}

// span is a time since boot with its doubt, in nanoseconds.
type span struct{ from, to int64 }

// boot returns when since boot t was.
func (c clock) boot(t time.Time, offset int64) span {
	wall := t.UnixNano()
	s := span{from: wall - offset, to: wall - offset}
	if d := offset - c.offset; d > int64(jump) || d < -int64(jump) {
		s.from, s.to = min(s.from, wall-c.offset), max(s.to, wall-c.offset)
	}
	if wall < c.since {
		return span{s.from - int64(unseen), s.to + int64(unseen)}
	}
	return span{onEdge(s.from), onEdge(s.to)}
}

// onEdge returns the edge of a tick that ns is on, else ns.
func onEdge(ns int64) int64 {
	near := (ns + int64(tick)/2) / int64(tick) * int64(tick)
	if d := near - ns; d <= int64(edge) && d >= -int64(edge) {
		return near
	}
	return ns
}

// readClocks returns the time since boot and what wall time is ahead of it. narrow says that both were read at one
// moment, within edge.
func readClocks() (boot, offset int64, narrow bool) {
	best := int64(-1)
	for range 8 {
		before := clockGettime(unix.CLOCK_BOOTTIME)
		wall := clockGettime(unix.CLOCK_REALTIME)
		after := clockGettime(unix.CLOCK_BOOTTIME)
		if width := after - before; best < 0 || width < best {
			best, boot, offset = width, after, wall-(before+after)/2
		}
		if best < int64(edge)/4 {
			return boot, offset, true
		}
	}
	return boot, offset, false
}

func clockGettime(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// verdict is what intervals say: the tool uses that may be it, and whether it is certain that one
// of them is.
type verdict struct {
	possible []session.ToolUse
	certain  bool
}

// byChild decides between the tool uses of a process by the start of its direct child. orphans says
// that the process adopts orphans: the child may then descend from an earlier one.
func (c clock) byChild(start uint64, uses []session.ToolUse, orphans bool) verdict {
	if len(uses) == 0 {
		return verdict{}
	}
	offset, narrow := c.now()
	from := int64(start) * int64(tick)
	to := from + int64(tick)
	var v verdict
	for _, t := range uses {
		began, ended := c.boot(t.BeganAt, offset), span{from: to, to: to}
		if t.EndedAt != nil {
			ended = c.boot(*t.EndedAt, offset)
		}
		if to <= began.from || (from >= ended.to && !orphans) {
			continue
		}
		v.possible = append(v.possible, t)
		v.certain = v.certain || from >= began.to && to <= ended.from && narrow && !orphans
	}
	return v
}

// byTime decides between the tool uses of a process that writes itself, at the time now.
func byTime(now time.Time, uses []session.ToolUse) verdict {
	var v verdict
	for _, t := range uses {
		if !t.BeganAt.After(now) && !endedBefore(t, now) {
			v.possible = append(v.possible, t)
		}
	}
	v.certain = len(v.possible) > 0
	return v
}

func endedBefore(t session.ToolUse, now time.Time) bool {
	return t.EndedAt != nil && !t.EndedAt.After(now)
}
