package ctl

import (
	"errors"
	"net/http"

	"aimon.at/vfsd/session"
)

// Failures that the control API adds to the session package's.
var (
	// ErrUnreachable says that no daemon answers on the socket.
	ErrUnreachable = errors.New("vfsd is not reachable")

	// ErrGone says that the bytes of an artifact cannot be had any more.
	ErrGone = errors.New("gone")
)

// Exit statuses of vfsctl.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitUnreachable = 4
	ExitNotAllowed  = 5
	ExitConflict    = 6
)

// Kind is one row of the table that an error is translated by, at both edges: by the server into an
// HTTP status and a code, by the client back into the sentinel, by vfsctl into its exit status.
type Kind struct {
	Sentinel error // nil for every failure that no other row names
	HTTP     int
	Code     string
	Exit     int
}

// kinds is that table. The first row whose sentinel an error wraps is its kind; the last one, any
// other failure, always matches.
var kinds = []Kind{
	{session.ErrInvalid, http.StatusBadRequest, "usage", ExitUsage},
	{session.ErrNotFound, http.StatusNotFound, "notFound", ExitNotFound},
	{session.ErrNotAllowed, http.StatusForbidden, "notAllowed", ExitNotAllowed},
	{session.ErrConflict, http.StatusConflict, "conflict", ExitConflict},
	{ErrGone, http.StatusGone, "gone", ExitFailed},
	{ErrUnreachable, http.StatusServiceUnavailable, "unreachable", ExitUnreachable},
	{nil, http.StatusInternalServerError, "failed", ExitFailed},
}

// KindOf returns the row of err, which is not nil.
func KindOf(err error) Kind {
	for _, k := range kinds {
		if k.Sentinel != nil && errors.Is(err, k.Sentinel) {
			return k
		}
	}
	return kinds[len(kinds)-1]
}

// ExitStatus returns the exit status that err stands for; nil is 0.
func ExitStatus(err error) int {
	if err == nil {
		return ExitDone
	}
	return KindOf(err).Exit
}

// Error is a failure as the server told it. It wraps the sentinel of its code.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the sentinel of the code, nil for "failed" and for a code of a later version.
func (e *Error) Unwrap() error {
	for _, k := range kinds {
		if k.Code == e.Code {
			return k.Sentinel
		}
	}
	return nil
}

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error Error `json:"error"`
}
