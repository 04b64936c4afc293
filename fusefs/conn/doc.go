// Package conn owns the connection to the kernel of one FUSE mount: the /dev/fuse descriptor. It
// mounts, agrees on the terms, reads requests, has a go-fuse protocol server decode, carry out and
// encode them, and writes the replies.
//
// # Concepts
//
// Waking another thread costs more than most requests do. So one reader is on duty: it reads a
// request, handles it in line and writes the reply. Others are parked, or are busy with requests
// that take long. A reader goes off duty before it handles what may block (by the kind of the
// request) and wakes a parked one to take over; a watch, which runs while there is traffic, takes
// it off duty where a request turns out to take long. Where requests wait although somebody is on
// duty, the watch puts further readers on duty, up to one for each processor, and takes them back
// when none wait any more. Who finishes off duty parks, or goes on duty where somebody is missing.
//
// # Guarantees
//
// As long as the bound on readers allows, somebody is on duty whatever handlers do, at the latest
// two ticks of the watch after a handler got stuck. Every request that wants a reply gets one, EIO
// at worst. Memory is bounded: a reader has one buffer for requests and one for replies.
// Serve returns when the kernel has ended the connection and the last handler is done.
//
// # Hazards
//
// A notification may wait for a lock that the kernel holds until a request is answered: none may be
// sent from a handler.
package conn
