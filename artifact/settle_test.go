package artifact_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
)

// inFlight is handles of which a release is under way: Settle lets it come.
type inFlight struct {
	release func()
	asked   []string
}

func (h *inFlight) Settle(_ context.Context, toolUseID string, _ time.Duration) {
	h.asked = append(h.asked, toolUseID)
	h.release()
}

// What was written before a mark is in its slice, also where the release comes during the mark.
func TestMarkSettles(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(b *bench)
		asked []string
	}{
		{"nothing to make final", func(b *bench) { b.tree.Write("/open", "1", by("B")) }, nil},
		{"of nobody", func(b *bench) { b.tree.Write("/f", "1", byNobody()) }, []string{""}},
		{"of an ended tool use", func(b *bench) { b.tree.Write("/f", "1", late(by("A"))) }, []string{"A"}},
		{"of several", func(b *bench) {
			b.tree.Write("/f", "1", late(by("A")))
			b.tree.Write("/g", "1", byNobody())
		}, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.end("A")
			c.write(b)
			h := &inFlight{release: func() { b.tree.Write("/f", "22", byNobody()) }}
			b.recorder.SetHandles(h)
			mark := b.mark()
			require.Equal(t, c.asked, h.asked)
			if c.asked != nil {
				views := b.list(artifact.ListQuery{Writes: true})
				require.Equal(t, uint64(len(views)), mark)
				require.Equal(t, int64(2), views[0].Stamp.Size)
			}
		})
	}
}
