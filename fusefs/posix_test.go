package fusefs

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"github.com/stretchr/testify/require"
)

// failsOnDisk are the tests that a plain disk fails in the same way, with the reason.
var failsOnDisk = map[string]string{
	"FcntlFlockLocksFile": "it wants a POSIX lock to conflict with another of the same process, which none does; go-fuse leaves it out too; see TestLocks",
}

func TestPosix(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(posixtest.All)) {
		if failsOnDisk[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inModes(t, nil, func(t *testing.T, m *mounted) {
				watch := time.AfterFunc(patience, m.abort)
				defer watch.Stop()
				dir := m.path("d")
				require.NoError(t, os.Mkdir(dir, 0o755))
				posixtest.All[name](t, dir)
			})
		})
	}
}
