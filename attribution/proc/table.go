package proc

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
)

// Table keeps descriptors and facts of the tasks that were looked at last. It is safe for
// concurrent use.
type Table struct {
	max    int
	opened atomic.Uint64 // tasks opened so far

	mu     sync.Mutex // guards all below and Task.refs
	tasks  map[int]*list.Element
	recent *list.List // of *Task, the last used first
	closed bool
}

// NewTable returns a table of at most max tasks, each of which holds up to three descriptors.
func NewTable(max int) *Table {
	return &Table{max: max, tasks: make(map[int]*list.Element), recent: list.New()}
}

// Look returns the living task with that thread id and the path of its cgroup v2, "" where it has
// none. The caller releases the task.
func (t *Table) Look(tid int) (*Task, string, error) {
	if task := t.cached(tid); task != nil {
		path, err := task.Cgroup()
		if err == nil {
			return task, path, nil
		}
		t.drop(task)
		task.Release()
	}
	task, err := t.open(tid)
	if err != nil {
		return nil, "", err
	}
	path, err := task.Cgroup()
	if err != nil {
		task.Release()
		return nil, "", err
	}
	t.keep(task)
	return task, path, nil
}

// Ancestor returns the task of line[i], line being all that Ancestors gave; an error where it is gone. What
// is read through it fails where it has gone since. The caller releases the task.
func (t *Table) Ancestor(line []Ancestor, i int) (*Task, error) {
	p := line[i].Process
	if task := t.cached(p.PID); task != nil {
		if task.Process == p {
			return task, nil
		}
		t.drop(task)
		task.Release()
	}
	task, err := t.open(p.PID)
	if err != nil {
		return nil, err
	}
	if task.Process != p {
		task.Release()
		return nil, fmt.Errorf("%w: its number %d was given to another one", ErrGone, p.PID)
	}
	t.keep(task)
	return task, nil
}

// Close lets go of all that is kept. Tasks in use are closed when they are released.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for t.recent.Len() > 0 {
		t.forget(t.recent.Back())
	}
}

func (t *Table) cached(tid int) *Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.tasks[tid]
	if e == nil {
		return nil
	}
	t.recent.MoveToFront(e)
	task := e.Value.(*Task)
	task.refs++
	return task
}

// keep puts a task that is in use in the place of the one with its number.
func (t *Table) keep(task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if old := t.tasks[task.tid]; old != nil {
		t.forget(old)
	}
	task.refs++
	t.tasks[task.tid] = t.recent.PushFront(task)
	for t.recent.Len() > t.max {
		t.forget(t.recent.Back())
	}
}

func (t *Table) drop(task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.tasks[task.tid]; e != nil && e.Value.(*Task) == task {
		t.forget(e)
	}
}

// forget takes an element out. t.mu is held.
func (t *Table) forget(e *list.Element) {
	task := t.recent.Remove(e).(*Task)
	delete(t.tasks, task.tid)
	t.unref(task)
}

// unref gives one use back. t.mu is held.
func (t *Table) unref(task *Task) {
	if task.refs--; task.refs == 0 {
		task.closeAll()
	}
}

// open makes a task that the caller holds.
func (t *Table) open(tid int) (*Task, error) {
	d, err := openDir(tid)
	if err != nil {
		return nil, err
	}
	task := &Task{table: t, refs: 1, turn: t.opened.Add(1), tid: tid, dir: d, cgroup: -1, image: image{alive: -1}}
	task.adopts = sync.OnceValue(task.isInit)
	if err := task.identify(); err != nil {
		task.Release()
		return nil, err
	}
	return task, nil
}
