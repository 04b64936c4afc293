package index

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/session"
)

// fill puts n final entries, one of each every is an artifact.
func fill(t testing.TB, x *Index, n, every int) {
	t.Helper()
	var batch []artifact.Mutation
	for i := 1; i <= n; i++ {
		e := final(fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ%07d", i), uint64(i), fmt.Sprintf("/src/some/directory/of/a/project/file-%d.txt", i%5000))
		e.Artifact = i%every == 0
		e.Reason, e.MimeType = "default", "text/plain; charset=utf-8"
		batch = append(batch, artifact.Mutation{Put: &e})
		if len(batch) == 1000 || i == n {
			require.NoError(t, x.Apply(t.Context(), batch))
			batch = nil
		}
	}
}

// TestPagesAreFast: the last page of a long listing comes as fast as the first. To scan up to it would
// take most of a second here; BenchmarkPage has the figures, about 1 ms with 100,000 artifacts.
func TestPagesAreFast(t *testing.T) {
	const n, limit = 6_000, 100
	x := open(t, t.TempDir())
	seed(t, x)
	fill(t, x, n, 1)
	for _, c := range []struct {
		name string
		q    artifact.Query
	}{
		{"session", artifact.Query{}},
		{"execution", artifact.Query{Executions: []string{"e1"}}},
		{"executions", artifact.Query{Executions: []string{"e1", "e2"}}},
		{"tool use", artifact.Query{ToolUseID: "t1"}},
	} {
		for _, from := range []uint64{0, n / 2, n - limit} {
			q := c.q
			q.SessionID, q.From, q.Limit, q.ArtifactsOnly = "s1", from, limit, true
			require.Less(t, quickest(t, x, q), 100*time.Millisecond, "%s from %d", c.name, from)
		}
	}
}

// quickest returns the shortest of a few tries: the machine may be busy with something else.
func quickest(t *testing.T, x *Index, q artifact.Query) time.Duration {
	t.Helper()
	best := time.Hour
	for range 5 {
		began := time.Now()
		found, err := x.Entries(t.Context(), q)
		best = min(best, time.Since(began))
		require.NoError(t, err)
		require.Len(t, found, q.Limit)
		require.Equal(t, q.From+1, found[0].Seq)
	}
	return best
}

func BenchmarkPage(b *testing.B) {
	for _, every := range []int{1, 1000} {
		b.Run(fmt.Sprintf("one artifact in %d", every), func(b *testing.B) {
			x, err := Open(b.TempDir(), quiet())
			require.NoError(b, err)
			defer x.Close()
			fill(b, x, 100_000, every)
			for b.Loop() {
				_, err := x.Entries(b.Context(), artifact.Query{SessionID: "s1", From: 50_000, Limit: 100, ArtifactsOnly: true})
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkPutToolUse(b *testing.B) {
	x, err := Open(b.TempDir(), quiet())
	require.NoError(b, err)
	defer x.Close()
	n := 0
	for b.Loop() {
		n++
		require.NoError(b, x.PutToolUse(b.Context(), session.ToolUse{ID: fmt.Sprint("toolu_", n), SessionID: "s1", ExecutionID: "e1", BeganAt: began}))
	}
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x, err := Open(b.TempDir(), quiet())
			require.NoError(b, err)
			defer x.Close()
			seq := uint64(0)
			for b.Loop() {
				batch := make([]artifact.Mutation, size)
				for i := range batch {
					seq++
					e := final(fmt.Sprintf("n%d", seq), seq, "/src/f")
					batch[i].Put = &e
				}
				require.NoError(b, x.Apply(b.Context(), batch))
			}
		})
	}
}

func BenchmarkSync(b *testing.B) {
	x, err := Open(b.TempDir(), quiet())
	require.NoError(b, err)
	defer x.Close()
	n := 0
	for b.Loop() {
		n++
		require.NoError(b, x.PutToolUse(b.Context(), session.ToolUse{ID: fmt.Sprint("t", n), SessionID: "s1", BeganAt: began}))
		require.NoError(b, x.Sync())
	}
}

func BenchmarkCheck(b *testing.B) {
	x, err := Open(b.TempDir(), quiet())
	require.NoError(b, err)
	defer x.Close()
	fill(b, x, 100_000, 10)
	for b.Loop() {
		require.NoError(b, x.Check(b.Context(), func(string) {}))
	}
}
