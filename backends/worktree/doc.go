// Package worktree is the local directory tree that the mount serves from.
//
// # Concepts
//
// Direct is the user's own directory. Everything in it is reached by a descriptor of a directory
// below the source and one name, never by a joined path: a caller may be 4,095 bytes deep, and a
// path that is resolved twice can mean two things. A descriptor opened with O_PATH stands for an
// inode: it is re-opened, changed and linked through /proc/self/fd, which leads to exactly that
// inode whatever its names have become.
//
// # Guarantees
//
// Nothing leads outside the source: names are single elements, walks are openat2 with
// RESOLVE_BENEATH, NO_SYMLINKS, NO_XDEV and NO_MAGICLINKS, and every looked-up inode has to be on
// the source's own mount: what is mounted below it is EXDEV.
//
// # Hazards
//
// Somebody who may rename directories of the source to a place outside of it can take an open
// descriptor along. Only who can reach the source directly can do that, not who is on the mount.
//
// Errors are plain errnos of the system call, so that they can be passed on to the caller of the
// mount; what is for people is wrapped.
package worktree
