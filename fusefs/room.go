package fusefs

import (
	"aimon.at/vfsd/backends/worktree"
	"golang.org/x/sys/unix"
)

// room makes sure that a further descriptor may be kept open for a caller, giving up what is only
// cached. Where there is none it is ENFILE: the system's limit is reached, not the caller's own. It is
// asked before an operation has an effect.
func (f *fileSystem) room() error {
	for worktree.Scarce() {
		if !f.dirs.shrink() {
			return unix.ENFILE
		}
	}
	return nil
}
