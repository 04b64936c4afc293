package fusefs

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOpenerGone(t *testing.T) {
	require.False(t, openedBy(uint32(os.Getpid())).gone())
	require.False(t, opener{}.gone(), "it cannot be seen from here")
	require.True(t, opener{tid: uint32(os.Getpid())}.gone(), "another one has the number now")
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	by := openedBy(uint32(cmd.Process.Pid))
	require.False(t, by.gone())
	in.Close()
	require.Eventually(t, by.gone, patience, time.Millisecond, "it ended, though nobody waited for it yet")
	require.NoError(t, cmd.Wait())
	require.True(t, by.gone())
}
