package ctl

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestErrorTable(t *testing.T) {
	for _, row := range []struct {
		sentinel error
		http     int
		code     string
		exit     int
	}{
		{session.ErrInvalid, 400, "usage", 2},
		{session.ErrNotFound, 404, "notFound", 3},
		{session.ErrNotAllowed, 403, "notAllowed", 5},
		{session.ErrConflict, 409, "conflict", 6},
		{ErrGone, 410, "gone", 1},
		{ErrUnreachable, 503, "unreachable", 4},
		{nil, 500, "failed", 1},
	} {
		t.Run(row.code, func(t *testing.T) {
			err := errors.New("disk on fire")
			if row.sentinel != nil {
				err = fmt.Errorf("execution e1: %w: try another", row.sentinel)
			}
			k := KindOf(err)
			require.Equal(t, Kind{row.sentinel, row.http, row.code, row.exit}, k)

			told := &Error{Code: k.Code, Message: err.Error()}
			require.Equal(t, err.Error(), told.Error())
			require.Equal(t, row.exit, ExitStatus(fmt.Errorf("verb: %w", told)))
			if row.sentinel != nil {
				require.ErrorIs(t, told, row.sentinel)
			}
		})
	}
	require.Equal(t, len(kinds), 7, "every row of the table has a test")
	require.Equal(t, 0, ExitStatus(nil))
	require.Equal(t, 1, ExitStatus(&Error{Code: "of a later version"}))
}
