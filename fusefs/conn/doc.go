// Package conn owns the connection to the kernel of one FUSE mount: the /dev/fuse descriptor. It
// mounts, agrees on the terms, reads requests, has a go-fuse protocol server decode, carry out and
// encode them, and writes the replies.
//
// # Concepts
//
// Waking another thread costs more than most requests do. So one reader is on duty: it reads a
// request, handles it in line and writes the reply. Others are parked, or are busy with requests
// that take long. A reader goes off duty before it handles what may block (by the kind of the
// request) and wakes a parked one to take over; where a request turns out to take long, an alarm
// goes off and takes it off duty. Where requests wait time and again although somebody is on duty,
// further readers go on duty, up to one for every two processors, and
// leave when none wait any more. Who finishes off duty parks, or goes on duty where somebody is missing.
//
// # Guarantees
//
// As long as the bound on readers allows, somebody is on duty whatever handlers do, at the latest
// some milliseconds after a handler got stuck. Every request that wants a reply gets one, EIO
// at worst. Memory is bounded: a reader has one buffer for requests and one for replies.
// Serve returns when the kernel has ended the connection and the last handler is done.
//
// # Hazards
//
// A notification may wait for a lock that the kernel holds until a request is answered: none may be
// sent from a handler.
package conn
