// Package artifact knows which files the tool uses of a session wrote and which of them are meant
// for the user.
//
// # Concepts
//
// A Recorder stands behind one mount. The mount tells it what happened (change.Event); it keeps an
// open Entry for each file that a tool use wrote and makes it final when the tool use ends. Intent
// decides whether an entry is an artifact (see Decision). The Library shows entries of all
// sessions with what became of their files, Tokens are links to the bytes of one of them.
// FileArtifact and MessageArtifact are the values that other programs keep.
//
// # Guarantees
//
// Recording never blocks and never fails a write: events are appended to memory, a batch of rows
// follows within 50 ms. A call that ends a tool use or an execution returns when its entries are
// durable. A final entry's content fields never change; each entry has one sequence number, so it
// is in exactly one slice between two marks.
//
// # Hazards
//
// Names, attributes and content come from a hostile tree. Names are bytes: use change.EscapePath before
// they go into JSON. The index is written without fsync between the ends of tool uses: it survives
// kill -9, not a power cut.
package artifact
