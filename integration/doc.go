// Package integration tests the real binaries on real mounts.
//
// Every test runs vfsd as another process on directories of its own, unmounts and ends it at its
// end, and gives up with a message instead of hanging: commands have deadlines, and a daemon that
// does not end is killed and its mount detached. The binaries are built with the race detector; a
// race, a panic or a mount left behind fails the test that caused it.
package integration
