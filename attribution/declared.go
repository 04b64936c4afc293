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

// listen finds what the caller's environment says, or where it says nothing the nearest ancestor's
// among the first count. It returns when ctx ends at the latest.
func (r *Resolver) listen(ctx context.Context, task *proc.Task, count int) hearsay {
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
		done <- r.search(ctx, task, count)
	}()
	select {
	case h := <-done:
		return h
	case <-ctx.Done():
		r.log.Debug("environment could not be read in time", logPID, task.Process.PID)
		return hearsay{unsure: true}
	}
}

// search is listen without a bound.
func (r *Resolver) search(ctx context.Context, task *proc.Task, count int) hearsay {
	buf := r.readers.buffers.Get().(*[environLimit]byte)
	defer r.readers.buffers.Put(buf)
	own := r.ask(task, buf[:])
	if own.said || own.unsure {
		return own
	}
	line := task.Ancestors()
	for i := range min(count, len(line)) {
		if ctx.Err() != nil {
			own.unsure = true
			break
		}
		h, foreign := r.askAncestor(line, i, buf[:])
		if h.said || h.unsure || foreign {
			return own.or(h)
		}
	}
	return own
}

// askAncestor is ask for an ancestor. foreign says that it belongs to somebody whose environment this daemon may not
// read, as every user's line does further up: what began there says nothing about a tool.
func (r *Resolver) askAncestor(line []proc.Ancestor, i int, buf []byte) (h hearsay, foreign bool) {
	task, err := r.table.Ancestor(line, i)
	if err != nil {
		return hearsay{unsure: true}, false
	}
	defer task.Release()
	env, cut, err := task.Environ(buf)
	if errors.Is(err, fs.ErrPermission) {
		return hearsay{}, true
	}
	return r.heard(task, env, cut, err), false
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

func (r *Resolver) ask(task *proc.Task, buf []byte) hearsay {
	env, cut, err := task.Environ(buf)
	return r.heard(task, env, cut, err)
}

func (r *Resolver) heard(task *proc.Task, env []byte, cut bool, err error) hearsay {
	if err != nil {
		r.log.Debug("environment could not be read", logPID, task.Process.PID, logError, err)
		return hearsay{unsure: true}
	}
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
