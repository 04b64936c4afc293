package ctl

import (
	"fmt"
	"os/user"
	"strconv"

	"aimon.at/vfsd/session"
)

// LookupOwner returns the uid that owner stands for: a number is a uid, whatever users are named, all else a
// user's name.
func LookupOwner(owner string) (uint32, error) {
	if n, err := strconv.ParseUint(owner, 10, 32); err == nil {
		return uint32(n), nil
	}
	u, err := user.Lookup(owner)
	if err != nil {
		return 0, fmt.Errorf("%w owner %q: no such user; give a user name or a uid", session.ErrInvalid, owner)
	}
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w owner %q: its uid %q is not a number", session.ErrInvalid, owner, u.Uid)
	}
	return uint32(n), nil
}
