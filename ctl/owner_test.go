package ctl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestLookupOwner(t *testing.T) {
	for in, want := range map[string]uint32{"root": 0, "0": 0, "4294967295": 1<<32 - 1} {
		uid, err := LookupOwner(in)
		require.NoError(t, err, in)
		require.Equal(t, want, uid, in)
	}
	for _, in := range []string{"", "-1", "4294967296", "no-such-user"} {
		_, err := LookupOwner(in)
		require.ErrorIs(t, err, session.ErrInvalid, in)
	}
}
