package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneStrangerLeavesRoomForOthers(t *testing.T) {
	c := crowd{ofUID: map[uint32]int{}}
	for range maxStranger {
		require.True(t, c.admit(1000))
	}
	require.False(t, c.admit(1000))
	require.True(t, c.admit(1001))
	c.leave(1000)
	require.True(t, c.admit(1000))
}

func TestManyStrangersAreBoundedTogether(t *testing.T) {
	c := crowd{ofUID: map[uint32]int{}}
	for uid := range uint32(maxStrangers) {
		require.True(t, c.admit(uid))
	}
	require.False(t, c.admit(maxStrangers))
	for uid := range uint32(maxStrangers) {
		c.leave(uid)
	}
	require.Empty(t, c.ofUID)
	require.Zero(t, c.all)
}
