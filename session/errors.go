package session

import "errors"

// The kinds of failure that callers tell apart, with errors.Is. Every error that leaves this
// module's packages for a user wraps one of them, or is an internal failure. The wrapping message
// says what, why and what to do.
var (
	ErrInvalid    = errors.New("invalid")     // bad input
	ErrNotFound   = errors.New("not found")   // does not exist, or not for this caller
	ErrNotAllowed = errors.New("not allowed") // a verb that is root's
	ErrConflict   = errors.New("conflict")    // already there, already ended, or more than one matches
)
