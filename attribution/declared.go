package attribution

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"aimon.at/vfsd/attribution/proc"
	"aimon.at/vfsd/session"
)

const (
	environLimit = 256 << 10 // bytes read of an environment
	maxReaders   = 16        // environments read at once
)

// hearsay is what the environments on a line say.
type hearsay struct {
	words
	by     session.Process // whose words the tool use's id is
	unsure bool            // an environment that counts could not be read, or not to its end
}

// declares reports whether there is a tool-use id that may be used.
func (h hearsay) declares() bool { return h.said && !h.invalid && !h.unsure }

// readers bounds how many environments are read at once. Each read holds a buffer and, where a
// hostile process makes it wait, an operating system thread.
type readers struct {
	slots   chan struct{}
	buffers sync.Pool
}

func newReaders() *readers {
	return &readers{
		slots:   make(chan struct{}, maxReaders),
		buffers: sync.Pool{New: func() any { return new([environLimit]byte) }},
	}
}

// descent is what the environments of a task's ancestors say. It is what they said when the task was first
// looked at: what an ancestor executes after has nothing to do with where the task came from.
type descent struct {
	hearsay
	at int // the ancestor that said it; past the last one for none
}

// within returns what the nearest count ancestors say.
func (d descent) within(count int) hearsay {
	if d.at < count {
		return d.hearsay
	}
	return hearsay{}
}

// answerer returns what a task's environment says. foreign says that it belongs to somebody whose environment this
// daemon may not read; ok is false where that is not known at once.
type answerer func(task *proc.Task) (h hearsay, foreign, ok bool)

// listen finds what the caller's environment says, or where it says nothing the nearest ancestor's
// among the first count. Where it has to be read that takes until the deadline at most.
func (r *Resolver) listen(ctx context.Context, task *proc.Task, count int) hearsay {
	if h, ok := r.search(task, count, recall); ok {
		return h
	}
	ctx, cancel := context.WithTimeout(ctx, r.deadline)
	defer cancel()
	select {
	case r.readers.slots <- struct{}{}:
	case <-ctx.Done():
		return hearsay{unsure: true}
	}
	task.Retain()
	done := make(chan hearsay, 1)
	go func() {
		defer func() { <-r.readers.slots }()
		defer task.Release()
		done <- r.read(ctx, task, count)
	}()
	select {
	case h := <-done:
		return h
	case <-ctx.Done():
		r.log.Debug("environment could not be read in time", logPID, task.Process.PID)
		return hearsay{unsure: true}
	}
}

// recall answers without waiting for any process.
func recall(task *proc.Task) (h hearsay, foreign, ok bool) {
	said, ok := task.Kept()
	if ok {
		h = said.(hearsay)
	}
	return h, false, ok
}

// read is search that reads what is not known, without a bound in time for each.
func (r *Resolver) read(ctx context.Context, task *proc.Task, count int) hearsay {
	buf := r.readers.buffers.Get().(*[environLimit]byte)
	defer r.readers.buffers.Put(buf)
	h, _ := r.search(task, count, func(of *proc.Task) (hearsay, bool, bool) {
		if ctx.Err() != nil {
			return hearsay{unsure: true}, false, true
		}
		if h, _, ok := recall(of); ok {
			return h, false, true
		}
		h, foreign := r.ask(of, buf[:])
		return h, foreign, true
	})
	return h
}

func (r *Resolver) search(task *proc.Task, count int, ask answerer) (h hearsay, ok bool) {
	own, foreign, ok := ask(task)
	own.unsure = own.unsure || foreign
	if !ok || own.said || own.unsure || count == 0 {
		return own, ok
	}
	above, ok := r.above(task, count, ask)
	if !ok {
		return hearsay{}, false
	}
	return own.or(above), true
}

// above finds what the nearest of the first count ancestors that says anything says. What is found out is
// noted with all that it is true for.
func (r *Resolver) above(task *proc.Task, count int, ask answerer) (h hearsay, ok bool) {
	if d, known := task.Note().(descent); known {
		return d.within(count), true
	}
	line := task.Ancestors()
	passed := make([]*proc.Task, 0, 8)
	defer func() {
		for _, p := range passed {
			p.Release()
		}
	}()
	d, known := descent{at: len(line)}, count >= len(line)
	for i := range min(count, len(line)) {
		up, err := r.table.Ancestor(line, i)
		if err != nil {
			return hearsay{unsure: true}, true
		}
		passed = append(passed, up)
		h, foreign, ok := ask(up)
		if !ok || h.unsure {
			return h, ok
		}
		if h.said || foreign {
			// Every user's line belongs to others further up: what began there says nothing about a tool.
			d, known = descent{hearsay: h, at: i}, true
			break
		}
		if further, ok := up.Note().(descent); ok {
			d, known = descent{hearsay: further.hearsay, at: further.at + i + 1}, true
			break
		}
	}
	if !known {
		return hearsay{}, true
	}
	task.SetNote(d)
	for i, p := range passed[:min(len(passed), d.at)] {
		p.SetNote(descent{hearsay: d.hearsay, at: d.at - i - 1})
	}
	return d.within(count), true
}

// or adds an ancestor's words to those of a caller that names no tool use.
func (h hearsay) or(a hearsay) hearsay {
	if h.execution != "" {
		a.execution = h.execution
	}
	if h.artifact != nil {
		a.artifact = h.artifact
	}
	return a
}

// ask reads an environment into buf.
func (r *Resolver) ask(task *proc.Task, buf []byte) (h hearsay, foreign bool) {
	said, err := task.Environ(buf, func(env []byte, cut bool) any { return r.heard(task, env, cut) })
	if err != nil {
		r.log.Debug("environment could not be read", logPID, task.Process.PID, logError, err)
		return hearsay{unsure: !errors.Is(err, fs.ErrPermission)}, errors.Is(err, fs.ErrPermission)
	}
	return said.(hearsay), false
}

func (r *Resolver) heard(task *proc.Task, env []byte, cut bool) hearsay {
	h := hearsay{words: parseEnviron(env, cut), by: task.Process}
	h.unsure = cut && !h.said
	if h.invalid {
		r.noteInvalid(task.Process, h.toolUse)
	}
	return h
}

// noteInvalid logs once for a process that the id in its environment is not valid.
func (r *Resolver) noteInvalid(p session.Process, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.noted[p]; ok || !r.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if len(r.noted) >= maxNoted {
		clear(r.noted)
	}
	r.noted[p] = struct{}{}
	r.log.Debug("tool-use id in the environment is not valid", logPID, p.PID, logError, session.CheckToolUseID(id))
}

// deadline is how long reading environments may take for one answer.
const deadline = 100 * time.Millisecond
