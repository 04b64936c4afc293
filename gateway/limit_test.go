package gateway

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALimitedListenerLetsOthersWait(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := limit(inner, 1)
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	first, err := l.Accept()
	require.NoError(t, err)
	second := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
		}
		second <- err
	}()
	select {
	case <-second:
		t.Fatal("accepted beyond the limit")
	default:
	}
	require.NoError(t, first.Close())
	require.NoError(t, <-second)
	held, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer held.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	go func() {
		_, err := l.Accept()
		second <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-second, net.ErrClosed)
	c.Close()
}
