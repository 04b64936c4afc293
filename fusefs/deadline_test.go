package fusefs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadline(t *testing.T) {
	d := within(time.Hour)
	require.NoError(t, d.Err())
	at, ok := d.Deadline()
	require.True(t, ok)
	require.WithinDuration(t, time.Now().Add(time.Hour), at, time.Minute)
	child, cancel := context.WithCancel(d)
	defer cancel()
	d.over()
	<-child.Done()
	require.ErrorIs(t, d.Err(), context.Canceled)

	past := within(-time.Second)
	require.ErrorIs(t, past.Err(), context.DeadlineExceeded)
	<-past.Done()
	require.ErrorIs(t, past.Err(), context.DeadlineExceeded)
	past.over()
	within(time.Hour).over()
}
