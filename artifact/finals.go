package artifact

import (
	"time"

	"aimon.at/vfsd/change"
)

// maxFinals bounds the memory of finals, about 250 bytes each.
const maxFinals = 100_000

// finals remembers which files got final entries lately, so that the index need not be asked about
// every file that is touched: a file born after since has final entries only if it is in last.
// Guarded by Recorder.mu.
type finals struct {
	since int64 // nanoseconds since the epoch
	last  map[change.FileID]lastFinal
}

// lastFinal is what a file's last final entry was final with.
type lastFinal struct {
	key   entryKey
	stamp change.Stamp
}

func newFinals(since time.Time) finals {
	return finals{since: since.UnixNano(), last: map[change.FileID]lastFinal{}}
}

func (f *finals) add(e Entry) {
	if len(f.last) >= maxFinals {
		// From here on the index is asked about every file that is there already.
		*f = newFinals(time.Now())
	}
	f.last[e.File] = lastFinal{keyOf(e.Who), e.Stamp}
}

// touch brings the remembered stamp forward.
func (f *finals) touch(t touched) {
	if l, ok := f.last[t.file]; ok && l.stamp == t.before {
		l.stamp = t.after
		f.last[t.file] = l
	}
}

// same reports whether a write is what the writer's entry of the file is final with already.
func (f *finals) same(e change.Event) bool {
	l, ok := f.last[e.File]
	return ok && l.key == keyOf(e.Who) && l.stamp == e.Stamp
}

// possible reports whether the file may have final entries. The file system's clock runs some
// milliseconds behind, so a birth after since is one.
func (f *finals) possible(id change.FileID) bool {
	if _, ok := f.last[id]; ok {
		return true
	}
	return id.Birth <= f.since
}
