package worktree

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that as leaves: the kernel has checked the caller's own rights, of which
// supplementary groups are not ours to take, and what set-group-id bit is not for the caller.
const kept = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FSETID

// as runs a system call that makes an inode, on this thread alone with the file system ids of o, so that
// the inode is the owner's from the start. To make it the daemon's and give it away later would need its
// name once more, which may lead to another inode then: whoever owns the source can exchange them and
// would be given what is the daemon's own.
//
// The thread is locked meanwhile, which also keeps the runtime from making other threads like it.
func as(self, o Owner, call func() error) error {
	if o == self {
		return retry(call)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer restoreIDs(self)
	if !become(o) {
		return unix.EPERM
	}
	if o.UID != self.UID {
		if err := keepCapabilities(); err != nil {
			return err
		}
	}
	return retry(call)
}

// become sets the ids, the group first, and reports whether that went well: the calls themselves only say
// what the ids were before.
func become(o Owner) bool {
	unix.SetfsgidRetGid(int(o.GID))
	gid, _ := unix.SetfsgidRetGid(int(o.GID))
	unix.SetfsuidRetUid(int(o.UID))
	uid, _ := unix.SetfsuidRetUid(int(o.UID))
	return uint32(gid) == o.GID && uint32(uid) == o.UID
}

// restoreIDs undoes become. Going back to the effective ids is always allowed, and gives back the
// capabilities that leaving root took; it can want for memory only, which is waited for, as the thread
// must not go on with ids that are not its own.
func restoreIDs(self Owner) {
	for !become(self) {
		runtime.Gosched()
	}
}

// keepCapabilities makes those effective again that are left after the file system uid stopped being
// root's.
func keepCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Effective |= data[0].Permitted & kept
	return unix.Capset(&head, &data[0])
}
