package attribution

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

type goneUse struct{ session, id string }

func watcher(t *testing.T, grace time.Duration) (*Watcher, chan goneUse) {
	t.Helper()
	gone := make(chan goneUse, 20_000)
	w, err := newWatcher(func(s, id string) { gone <- goneUse{s, id} }, quiet(), grace)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w, gone
}

func (p *peer) end() {
	p.t.Helper()
	require.NoError(p.t, p.in.Close())
	_, err := p.cmd.Process.Wait()
	require.NoError(p.t, err)
}

func TestWatcherTellsTheLast(t *testing.T) {
	w, gone := watcher(t, time.Millisecond)
	a, b := start(t, nil, "cat"), start(t, nil, "cat")
	w.Seen("s1", "T1", a.process())
	w.Seen("s1", "T1", b.process())
	w.Seen("s1", "T1", b.process())
	w.Seen("s1", "T2", a.process())
	a.end()
	require.Equal(t, goneUse{"s1", "T2"}, <-gone)
	require.Empty(t, gone)
	b.end()
	require.Equal(t, goneUse{"s1", "T1"}, <-gone)

	c := start(t, nil, "cat")
	w.Seen("s1", "T1", c.process())
	c.end()
	require.Equal(t, goneUse{"s1", "T1"}, <-gone)
}

func TestWatcherGivesGrace(t *testing.T) {
	w, gone := watcher(t, time.Hour)
	a, b := start(t, nil, "cat"), start(t, nil, "cat")
	who := a.process()
	w.Seen("s1", "T1", who)
	a.end()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.empty) == 1
	}, 5*time.Second, time.Millisecond)
	w.Seen("s1", "T1", b.process())
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.empty)
	require.Empty(t, gone)
}

func TestWatcherSeesNobody(t *testing.T) {
	w, gone := watcher(t, time.Millisecond)
	w.Seen("s1", "T1", session.Process{})
	w.mu.Lock()
	require.Empty(t, w.uses)
	w.mu.Unlock()
	w.Seen("s1", "T2", session.Process{PID: os.Getpid(), Start: 1}) // an earlier one of that number
	require.Equal(t, goneUse{"s1", "T2"}, <-gone)
}

func TestWatcherForgets(t *testing.T) {
	w, gone := watcher(t, time.Millisecond)
	a := start(t, nil, "cat")
	w.Seen("s1", "T1", a.process())
	w.Forget("s1", "T1")
	w.Forget("s1", "T1")
	w.mu.Lock()
	require.Empty(t, w.carriers)
	require.Empty(t, w.byFD)
	w.mu.Unlock()
	a.end()
	w.Close()
	require.Empty(t, gone)
	w.Seen("s1", "T1", session.Process{PID: os.Getpid(), Start: 1})
	w.Close()
}

func TestWatcherWithoutDescriptor(t *testing.T) {
	w, gone := watcher(t, time.Millisecond)
	a := start(t, nil, "cat")
	who := a.process()
	w.Seen("s1", "T1", who)
	w.mu.Lock()
	c := w.carriers[who]
	delete(w.byFD, c.fd)
	closeFD(c.fd)
	c.fd = -1
	w.rouse()
	w.mu.Unlock()
	a.end()
	require.Equal(t, goneUse{"s1", "T1"}, <-gone)
}

func TestWatcherOfMany(t *testing.T) {
	w, gone := watcher(t, time.Millisecond)
	a := start(t, nil, "cat")
	who := a.process()
	const many = 10_000
	for i := range many {
		w.Seen("s1", fmt.Sprint(i), who)
	}
	a.end()
	seen := make(map[goneUse]bool)
	for range many {
		seen[<-gone] = true
	}
	require.Len(t, seen, many)
}
