package fusefs

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"aimon.at/vfsd/backends/worktree"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Set-id bits go when somebody without privilege changes the content. The kernel leaves that to us
// (FUSE_HANDLE_KILLPRIV_V2), which spares a request per write, and the disk does it only for who
// has no privilege, which we have. Writes by passthrough are not seen: what has such bits is
// opened without.

// setID reports whether the content of st cannot be changed without a look at its mode.
func setID(st *worktree.Stat) bool {
	return st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
}

// dropSetID clears them as the disk does for the caller: set-group-id where the group may execute
// or the caller is not of it. It reports whether there were any. The node's lock is held.
func (f *fileSystem) dropSetID(fd int, in *fuse.InHeader) (bool, error) {
	var st worktree.Stat
	if err := f.tree.StatFD(fd, &st); err != nil || !setID(&st) || !st.IsRegular() {
		return false, err
	}
	kept := uint32(st.Mode) & 0o7777 &^ unix.S_ISUID
	if st.Mode&unix.S_IXGRP != 0 || !inGroup(in, st.Gid) {
		kept &^= unix.S_ISGID
	}
	if kept == uint32(st.Mode)&0o7777 {
		return false, nil
	}
	return true, f.tree.Chmod(fd, kept)
}

// inGroup reports whether the caller, which is blocked in the request, is in the group. One that
// cannot be looked at is not.
func inGroup(in *fuse.InHeader, gid uint32) bool {
	if in.Gid == gid {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(in.Pid), 10) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte("\nGroups:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	want := []byte(strconv.FormatUint(uint64(gid), 10))
	return slices.ContainsFunc(bytes.Fields(line), func(g []byte) bool { return bytes.Equal(g, want) })
}
