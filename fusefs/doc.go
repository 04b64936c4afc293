// Package fusefs is the kernel's side of a mount: it answers FUSE requests from a working tree and
// says what happened in it. It is the only importer of go-fuse.
//
// # Concepts
//
// A node is an inode that the kernel knows, keyed by its change.FileID so that hard links share
// one; it knows under which names of which directories it was seen last, but holds no descriptor.
// A directory's descriptor is in a bounded cache and is walked to again where it fell out. A file
// that is open has one O_PATH descriptor for all its handles. With passthrough the kernel reads
// and writes that file itself (the inode is registered while it is open); otherwise, in plain mode,
// every handle has a descriptor of its own and reads and writes come here. A mount does one or
// the other: an inode that is open both ways is EIO in the kernel.
//
// Package conn reads the kernel's requests and calls the methods of fileSystem, one request at a time
// on the thread that read it. Most are answered in some microseconds, so what a handler must not do
// is what wakes other threads: start a goroutine, set a timer, signal somebody, for every request.
//
// # Guarantees
//
// Every inode that is worked on is the one that the kernel means: what is found by name is
// compared with the node's identity, and ESTALE, on which the kernel looks the name up again, is the
// answer where the tree was changed behind the mount. Events are recorded in an order in which
// they can have happened, with the paths that held at that point of the order. An operation is
// carried out to its end whether or not its caller waits for it.
//
// # Locks
//
// In this order: moving, a node's opened.mu, handles.mu, order.mu, table.mu, dirCache.mu. What each
// guards is said where it is declared. No notification is sent to the kernel from inside a handler:
// the kernel may hold the very lock that the notification waits for.
//
// # Hazards
//
// Mount sets the umask of the process to 0: modes come from the callers of the mount. Whoever makes
// files of the daemon's own gives an explicit mode. The daemon must not touch its own mount.
package fusefs
