package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func read(t *testing.T, text string) (config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vfsd.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	c := defaultConfig()
	return c, readConfig(path, &c)
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vfsd.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
http: off
max-token-ttl: 2h
mounts:
  - source: /src
    mountpoint: /mnt
    artifacts: on
`), 0o600))
	c := defaultConfig()
	require.NoError(t, readConfig(path, &c))
	require.Equal(t, "off", c.HTTP)
	require.Equal(t, duration(2*time.Hour), c.MaxTokenTTL)
	require.Len(t, c.Mounts, 1)
	require.True(t, c.Mounts[0].Artifacts.or(false))
	require.Equal(t, duration(time.Second), c.Mounts[0].CacheTimeout, "a mount has the defaults of the command line")
	require.NoError(t, c.check())
}

func TestReadConfigRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"sockett: x":                             "sockett",
		"mounts:\n- source: /a\n  mountpont: /b": "mountpont",
		"mounts:\n- artifacts: perhaps":          "perhaps",
		"max-token-ttl: soon":                    "soon",
		"- a list":                               "cannot",
	} {
		_, err := read(t, text)
		require.ErrorIs(t, err, session.ErrInvalid, text)
		require.Contains(t, err.Error(), says)
		require.NotContains(t, err.Error(), "\n")
		require.NotContains(t, err.Error(), "main.")
	}
}

func TestCheckConfig(t *testing.T) {
	mount := func(change func(*mountConfig)) func(*config) {
		return func(c *config) {
			m := defaultMount()
			m.Source, m.Mountpoint = "/a", "/b"
			change(&m)
			c.Mounts = []mountConfig{m}
		}
	}
	for says, change := range map[string]func(*config){
		"--http":          func(c *config) { c.HTTP = "junk" },
		"--public-url":    func(c *config) { c.HTTP, c.PublicURL = "off", "https://x" },
		"--max-token-ttl": func(c *config) { c.MaxTokenTTL = 0 },
		"--passthrough":   mount(func(m *mountConfig) { m.Passthrough = "on" }),
		"session id":      mount(func(m *mountConfig) { m.Session = "a b" }),
		"no such user":    mount(func(m *mountConfig) { m.Owner = "no-such-user" }),
		"mountpoint":      mount(func(m *mountConfig) { m.Mountpoint = "" }),
	} {
		c := defaultConfig()
		change(&c)
		err := c.check()
		require.ErrorIs(t, err, session.ErrInvalid, says)
		require.Contains(t, err.Error(), says)
	}
	c := defaultConfig()
	c.PublicURL = "https://x/"
	require.NoError(t, c.check())
	require.Equal(t, "https://x", c.PublicURL)
}
