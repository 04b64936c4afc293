package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aimon.at/vfsd/session"
)

func TestCheckSource(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a/b/c", "ab", "link-target"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, c := range []struct {
		source, other string
		mounted       bool
		says          string
	}{
		{"a", "a", false, "same directory"},
		{"a", "a/b", false, "contains"},
		{"a/b", "a", false, "lies in"},
		{"a", "ab", false, ""},
		{"a", "a/b", true, "contains"},
		{"a/b", "a", true, "lies in"},
		{"a", "ab", true, ""},
		{"a", "a/none", true, "contains"}, // a mount is told by its name: nobody looks at it
	} {
		err := checkSource(at(c.source), []place{{what: "source", path: at(c.other), kind: session.ErrConflict, mounted: c.mounted}})
		if c.says == "" {
			require.NoError(t, err, c)
			continue
		}
		require.ErrorIs(t, err, session.ErrConflict, c)
		require.Contains(t, err.Error(), c.says)
	}
	require.ErrorIs(t, checkMountpoint(at("a/b"), []place{{what: "source", path: at("a"), kind: session.ErrInvalid}}), session.ErrInvalid)
}

func TestDefaultSession(t *testing.T) {
	for _, c := range []struct{ mountpoint, prefix string }{
		{"/srv/mnt", "mnt-"},
		{"/srv/.hidden", "_.hidden-"},
		{"/srv/two words", "two_words-"},
		{"/srv/" + strings.Repeat("x", 255), strings.Repeat("x", 100) + "-"},
		{"/srv/\xff", "_-"},
	} {
		id := defaultSession(c.mountpoint, "/src")
		require.NoError(t, session.CheckID("session", id))
		require.Len(t, id, len(c.prefix)+6)
		require.True(t, strings.HasPrefix(id, c.prefix), id)
		require.NotEqual(t, id, defaultSession(c.mountpoint, "/other"))
	}
}
