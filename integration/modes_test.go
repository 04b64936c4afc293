package integration

import "testing"

// modes runs a test with kernel passthrough of file data and without.
func modes(t *testing.T, test func(t *testing.T, flag string)) {
	t.Helper()
	t.Run("passthrough", func(t *testing.T) { test(t, "--passthrough=auto") })
	t.Run("plain", func(t *testing.T) { test(t, "--passthrough=off") })
}

// with is the same daemon reporting to a subtest.
func (d *daemon) with(t *testing.T) *daemon {
	c := *d
	c.t = t
	return &c
}
