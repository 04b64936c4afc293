package index

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/session"
)

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := Open(dir, quiet())
	require.ErrorIs(t, err, session.ErrConflict)
	require.ErrorContains(t, err, dir)
}

func TestOpenMakesItForOneUserOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// An index of scheme 1 has no rows of two kinds, or old ones.
func TestOpenScheme1(t *testing.T) {
	dir := t.TempDir()
	x, err := Open(dir, quiet())
	require.NoError(t, err)
	seed(t, x)
	require.NoError(t, x.db.DropPrefix([]byte{kindBelow}))
	require.NoError(t, x.db.Update(func(tx *badger.Txn) error {
		if err := tx.Set(under(kindExecutionOpen, "gone").text("x"), entryKey("gone")); err != nil {
			return err
		}
		return set(tx, schemeKey(), 1)
	}))
	require.NoError(t, x.Close())

	for range 2 {
		x, err = Open(dir, quiet())
		require.NoError(t, err)
		require.NoError(t, x.Check(t.Context(), func(line string) { t.Error(line) }))
		require.NoError(t, x.Close())
	}
}

func TestOpenOtherScheme(t *testing.T) {
	for _, c := range []struct {
		name  string
		found int
		want  string
	}{
		{"newer", scheme + 1, "newer vfsd"},
		{"older", 0, "does not read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x, err := Open(dir, quiet())
			require.NoError(t, err)
			seed(t, x)
			require.NoError(t, x.db.Update(func(tx *badger.Txn) error { return set(tx, schemeKey(), c.found) }))
			require.NoError(t, x.Close())

			for range 2 { // it stays as it is
				_, err = Open(dir, quiet())
				require.ErrorIs(t, err, session.ErrConflict)
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestOpenForeignDatabase(t *testing.T) {
	dir := t.TempDir()
	db, err := badger.Open(settings(dir, quiet()))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *badger.Txn) error { return tx.Set([]byte("foreign"), []byte("x")) }))
	require.NoError(t, db.Close())
	_, err = Open(dir, quiet())
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestOpenDamaged(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
	}{
		{"manifest overwritten", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "MANIFEST"), []byte("this is no manifest at all"), 0o600))
		}},
		{"table missing", func(t *testing.T, dir string) { require.NoError(t, os.Remove(tableIn(t, dir))) }},
		{"table truncated", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(tableIn(t, dir), 40)) }},
		{"table overwritten", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(tableIn(t, dir), make([]byte, 4096), 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x, err := Open(dir, quiet())
			require.NoError(t, err)
			seed(t, x)
			require.NoError(t, x.Close())
			c.damage(t, dir)
			_, err = Open(dir, quiet())
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, "put back a copy")
		})
	}
}

func tableIn(t *testing.T, dir string) string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	return tables[0]
}

func TestOpenReadOnlyAndFullDisk(t *testing.T) {
	for _, c := range []struct {
		name, options string
		flags         uintptr
		want          error
	}{
		{"read-only", "size=200m", unix.MS_RDONLY, unix.EROFS},
		{"small", "size=8m", 0, unix.ENOSPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(tmpfs(t, c.options, c.flags), quiet())
			require.ErrorIs(t, err, c.want)
		})
	}
}

// tmpfs mounts a small file system for the time of the test. It takes root.
func tmpfs(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", flags, options))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// TestDiskFillsUp: changes are refused before the disk is full, reading goes on, and changes do
// when there is room again.
func TestDiskFillsUp(t *testing.T) {
	dir := tmpfs(t, "size=120m", 0)
	x := open(t, filepath.Join(dir, "index"))
	seed(t, x)
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 80<<20), 0o600))
	require.ErrorIs(t, x.PutSession(t.Context(), session.Session{ID: "s2"}), unix.ENOSPC)
	_, err := x.Session(t.Context(), "s1")
	require.NoError(t, err)
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, x.PutSession(t.Context(), session.Session{ID: "s2", CreatedAt: began}))
	requireSound(t, x)
}

func TestClosed(t *testing.T) {
	x := open(t, t.TempDir())
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.Sync(), ErrClosed)
	require.ErrorIs(t, x.PutSession(t.Context(), session.Session{ID: "s1"}), ErrClosed)
	_, err := x.Sessions(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

func TestCloseEndsWhereTheDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	x, err := Open(dir, quiet())
	require.NoError(t, err)
	require.NoError(t, x.PutSession(t.Context(), session.Session{ID: "s1"}))
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, x.closeDB(time.Second), ErrNotClosed)
}
