// Package change holds the values that say what happened in a working tree: which file, under
// which names, and what its content looked like.
//
// They are produced by the mount (fusefs) in the order in which the kernel carried the operations
// out and consumed by the collector (artifact). Neither side needs the other's package.
//
// Paths are bytes, start with "/", are relative to the mount's root and clean: no "." or ".."
// element, no double and no trailing slash. The root itself is "/".
package change

import (
	"time"

	"aimon.at/vfsd/session"
)

// FileID names an inode of the backing file system over its whole life. The birth time tells a
// file from a later one that was given the same number. The zero value names no file.
type FileID struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Birth int64  `json:"birth,omitempty"` // nanoseconds since the epoch; 0 where the file system keeps none
}

// Stamp is what is compared to see whether a file's content may have changed: any change of
// content through any descriptor or mapping moves at least one of its fields.
type Stamp struct {
	Size  int64 `json:"size"`  // bytes
	Mtime int64 `json:"mtime"` // nanoseconds since the epoch
	Ctime int64 `json:"ctime"` // nanoseconds since the epoch
}

// Kind is the kind of an Event.
type Kind uint8

const (
	// Write: the content of File changed. Sent when it is created or truncated, when a handle
	// that changed it is released, and when Settle finds it changed behind a handle that is still
	// open. Path is its name at that moment, "" where it has none (O_TMPFILE, unlinked). Who wrote.
	Write Kind = iota + 1

	// Rename: File, not a directory, went from From to Path. Replaced is the file that had the
	// name Path and lost it, if any. Who renamed.
	Rename

	// RenameDir: the directory From is now Path. Replaced is not set. Who renamed.
	RenameDir

	// Exchange: the entries From and Path changed places (RENAME_EXCHANGE); File is now at Path
	// and Replaced, the other one, at From. Either may be a directory: Directory says so of File,
	// ReplacedDirectory of Replaced. Stamp and Before are meaningless where File is a directory; of
	// Replaced only a Touch tells. Who exchanged.
	Exchange

	// Link: File has the further name Path (From is "" for a file that had none). Who linked.
	Link

	// Unlink: File lost the name Path. Last says that it was its last one. Stamp is what File was like
	// before: where it has other names, a Touch says what the loss of this one did to its attributes.
	Unlink

	// Intent: user.aimon.artifact of the file or directory (Directory) at Path was set or removed.
	Intent

	// Touch: attributes of File changed and its content did not: Before and Stamp are what it
	// looked like before and after. Sent for chmod, chown, utimes, setxattr, link, rename and unlink.
	Touch
)

// Event is one thing that happened.
type Event struct {
	Kind              Kind
	File              FileID
	Path              string
	From              string
	Replaced          FileID
	Directory         bool
	ReplacedDirectory bool
	Last              bool
	Before            Stamp
	Stamp             Stamp // of File after the event, of an Unlink before it
	Who               session.Attribution
	At                time.Time
}
