// Package ctl is the control API of vfsd as its clients see it: the values on the wire, the error
// codes, and a typed Client.
//
// # Format
//
// HTTP with JSON bodies over a unix socket, paths below /v1/. Field names are camelCase, times
// RFC 3339 in UTC, sizes bytes. A listing answers with a page, {"items": [...], "next": N}, and
// goes on with ?from=N; a missing or zero next ends it. A failure is
// {"error": {"code", "message"}}; its code is a row of the table in errors.go.
//
// A path begins with "/" and is relative to the mount's root. Paths are bytes and JSON strings are
// not: where a path is no valid UTF-8, "pathEscaped" is true, and in path and fileName each invalid
// byte is written \xNN and each backslash \\.
//
// # Guarantees and hazards
//
// Ids that may hold any character (those of tool uses) travel in bodies and queries only. A Client is
// safe for concurrent use. The package links neither the index nor the mount nor a store: it is
// what vfsctl loads on every call.
package ctl

import (
	"os"
	"path/filepath"
)

// EnvSocket is the environment variable that names the control socket.
const EnvSocket = "VFSD_SOCKET"

// DefaultSocket returns the path of the control socket where none is given: VFSD_SOCKET, else the
// one of root's daemon for root and for who has no runtime directory (XDG_RUNTIME_DIR), else the one in that.
func DefaultSocket() string {
	if s := os.Getenv(EnvSocket); s != "" {
		return s
	}
	return defaultSocket(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR"))
}

func defaultSocket(uid int, runtimeDir string) string {
	if uid == 0 || runtimeDir == "" {
		return "/run/vfsd/vfsd.sock"
	}
	return filepath.Join(runtimeDir, "vfsd.sock")
}
