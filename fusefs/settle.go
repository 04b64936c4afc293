package fusefs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"aimon.at/vfsd/session"
	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of start times in /proc: USER_HZ, 100 on every Linux.
const ticksPerSecond = 100

// opener is who opened a handle: a thread, and the time of the open in ticks since boot. A thread of
// that id that started later is another one.
type opener struct {
	tid uint32
	at  uint64
}

func openedBy(tid uint32) opener {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return opener{tid: tid, at: uint64(ts.Nano()) / (1e9 / ticksPerSecond)}
}

// gone reports whether the thread has ended. One that cannot be seen from here never has.
func (o opener) gone() bool {
	if o.tid == 0 {
		return false
	}
	p, _, err := session.ReadProcess(int(o.tid))
	if err != nil {
		return errors.Is(err, session.ErrNotFound)
	}
	if p.Start > o.at {
		return true
	}
	// One that ended and was not waited for yet has no program any more.
	_, err = os.Readlink("/proc/" + strconv.FormatUint(uint64(o.tid), 10) + "/exe")
	return errors.Is(err, fs.ErrNotExist)
}

// settle is Mount.Settle.
func (f *fileSystem) settle(ctx context.Context, toolUseID string, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		released, closing := f.handles.closing(toolUseID)
		if !closing {
			break
		}
		select {
		case <-released:
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, h := range f.handles.writing(toolUseID, f.table.pin) {
		f.recordOpen(h)
		f.table.release(h.node)
	}
}

// recordOpen records what was written by a handle that is still open.
func (f *fileSystem) recordOpen(h *handle) {
	o := &h.node.opened
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.writing) > 0 {
		f.recordChanged(h.node)
	}
}

// writing returns the handles for writing of a tool use, of all for "". The node of each is given to
// pin, where there is one, as the handle may be released as soon as this returns.
func (t *handles) writing(toolUseID string, pin func(*node)) []*handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*handle
	for _, h := range t.files {
		if h.write && (toolUseID == "" || h.who.ToolUseID == toolUseID) {
			out = append(out, h)
			if pin != nil {
				pin(h.node)
			}
		}
	}
	return out
}

// closing reports whether the opener of one of them is gone, so that its release is under way, and
// gives a channel that is closed at the next release.
func (t *handles) closing(toolUseID string) (<-chan struct{}, bool) {
	released := t.nextRelease()
	for _, h := range t.writing(toolUseID, nil) {
		if h.by.gone() {
			return released, true
		}
	}
	return released, false
}

func (t *handles) nextRelease() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released == nil {
		t.released = make(chan struct{})
	}
	return t.released
}
