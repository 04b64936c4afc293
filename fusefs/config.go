package fusefs

import "time"

// forever is how long the kernel may trust what it knows where nobody else touches the tree.
const forever = 24 * time.Hour

// Config says how a tree is mounted.
type Config struct {
	Mountpoint   string
	FSName       string        // first column of /proc/mounts; "" for the tree's path
	CacheTimeout time.Duration // how long the kernel may trust names and attributes; 0 for not at all
	Exclusive    bool          // nobody changes the tree but through this mount: trust for long
	AllowOther   bool          // other users may enter; the kernel checks permissions

	// NoPassthrough makes all reads and writes come to the daemon. Without it they do not, where the
	// daemon is root and the kernel and the source's file system allow it.
	NoPassthrough bool
}

func (c Config) timeout() time.Duration {
	if c.Exclusive {
		return forever
	}
	return c.CacheTimeout
}
