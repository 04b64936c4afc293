package worktree

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// held counts the descriptors of all trees: the limit that they run into is the process's.
var held atomic.Int64

// mostReserved bounds what is left for the index, connections, downloads, /proc and descriptors that
// live as long as one request: a quarter of what there is, but no more than this.
const mostReserved = 8192

// Scarce reports whether nothing more may be kept open for callers of a mount. They decide how many
// files are open; without this bound they could take the last descriptor, and with it the index and
// the control socket, from everybody.
func Scarce() bool { return held.Load() >= budget() }

func budget() int64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 0
	}
	most := int64(min(lim.Cur, 1<<31))
	return most - min(most/4, mostReserved)
}
