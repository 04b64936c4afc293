package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func (m *mounted) isMounted() bool {
	at, err := mountedAt(m.dir)
	require.NoError(m.t, err)
	return at != nil && at.FSType == mountKind
}

func TestUnmount(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		require.True(t, m.isMounted())
		b, err := os.ReadFile("/proc/mounts")
		require.NoError(t, err)
		require.Contains(t, string(b), fmt.Sprintf("%s %s fuse.vfsd rw,nosuid,nodev", m.source, m.dir))
		r, _ := m.command("unmount")
		require.Equal(t, &reply{}, r)
		require.False(t, m.isMounted())
		r, _ = m.command("unmount")
		require.Equal(t, &reply{}, r, "gone already")
	})
}

func TestUnmountBusy(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		f, err := os.Create(m.path("f"))
		require.NoError(t, err)
		defer f.Close()
		cwd := exec.Command("sleep", "100")
		cwd.Dir = m.dir
		require.NoError(t, cwd.Start())
		defer func() { cwd.Process.Kill(); cwd.Wait() }()
		began := time.Now()
		r, _ := m.command("unmount")
		require.True(t, r.Detached, r.Error)
		require.Less(t, time.Since(began), 5*time.Second)
		require.False(t, m.isMounted())
		_, err = f.WriteString("still works")
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		b, err := os.ReadFile(m.below("f"))
		require.NoError(t, err)
		require.Equal(t, "still works", string(b))
	})
}

func TestUnmountedByOthers(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		require.NoError(t, unmount(m.dir))
		r, _ := m.command("unmount")
		require.Equal(t, &reply{}, r)
	})
}

func TestStaleMountIsTakenOver(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		require.NoError(t, os.WriteFile(m.path("f"), []byte("kept"), 0o644))
		require.NoError(t, m.cmd.Process.Signal(syscall.SIGKILL))
		for range m.messages { // until it is gone
		}
		require.True(t, m.isMounted(), "the dead mount is still there")
		again := serve(t, spec{Source: m.source, Config: Config{Mountpoint: m.dir, AllowOther: os.Geteuid() == 0}})
		b, err := os.ReadFile(again.path("f"))
		require.NoError(t, err)
		require.Equal(t, "kept", string(b))
	})
}

func TestMountRefuses(t *testing.T) {
	dir := scratch(t)
	source := filepath.Join(dir, "source")
	require.NoError(t, os.Mkdir(source, 0o755))
	full := filepath.Join(dir, "full")
	require.NoError(t, os.Mkdir(full, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o644))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	live := serve(t, spec{Source: source})
	for mountpoint, want := range map[string]string{
		filepath.Join(dir, "none"): "does not exist",
		full:                       "not empty",
		file:                       "not a directory",
		live.dir:                   "is mounted at",
	} {
		m := start(t, spec{Source: source, Config: Config{Mountpoint: mountpoint}})
		require.Contains(t, m.ready.Error, want)
		require.NotContains(t, m.ready.Error, "\n")
	}
	require.True(t, live.isMounted())
}

func TestReservedName(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		require.NoError(t, os.Mkdir(m.below(".aimon"), 0o700))
		_, err := os.Lstat(m.path(".aimon"))
		require.ErrorIs(t, err, unix.ENOENT)
		require.NoError(t, os.WriteFile(m.path("f"), nil, 0o644))
		require.ErrorIs(t, os.WriteFile(m.path(".aimon"), nil, 0o644), unix.EPERM)
		require.ErrorIs(t, os.Mkdir(m.path(".aimon"), 0o755), unix.EPERM)
		require.ErrorIs(t, os.Symlink("x", m.path(".aimon")), unix.EPERM)
		require.ErrorIs(t, os.Rename(m.path("f"), m.path(".aimon")), unix.EPERM)
		require.ErrorIs(t, os.Link(m.path("f"), m.path(".aimon")), unix.EPERM)
		entries, err := os.ReadDir(m.dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}

// TestChangedBehind: what changes in the source is seen within the timeout.
func TestChangedBehind(t *testing.T) {
	short := func(s *spec) { s.Config.CacheTimeout = 50 * time.Millisecond }
	inModes(t, short, func(t *testing.T, m *mounted) {
		require.NoError(t, os.WriteFile(m.path("f"), []byte("old"), 0o644))
		_, err := os.Lstat(m.path("new"))
		require.ErrorIs(t, err, unix.ENOENT)
		require.NoError(t, os.WriteFile(m.below("f"), []byte("changed"), 0o644))
		require.NoError(t, os.WriteFile(m.below("new"), []byte("new"), 0o644))
		require.NoError(t, os.WriteFile(m.below("tmp"), []byte("replaced"), 0o644))
		require.Eventually(t, func() bool {
			b, err := os.ReadFile(m.path("f"))
			n, err2 := os.ReadFile(m.path("new"))
			return err == nil && err2 == nil && string(b) == "changed" && string(n) == "new"
		}, patience, 10*time.Millisecond)
		require.NoError(t, os.Rename(m.below("tmp"), m.below("f")))
		require.Eventually(t, func() bool {
			b, err := os.ReadFile(m.path("f"))
			return err == nil && string(b) == "replaced"
		}, patience, 10*time.Millisecond)
		require.NoError(t, os.Remove(m.below("f")))
		require.Eventually(t, func() bool {
			_, err := os.Lstat(m.path("f"))
			return os.IsNotExist(err)
		}, patience, 10*time.Millisecond)
	})
}

func TestDevicesAndMountsBelow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make devices and mounts")
		return
	}
	inModes(t, nil, func(t *testing.T, m *mounted) {
		require.Equal(t, unix.EPERM, unix.Mknod(m.path("dev"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		require.Equal(t, unix.EPERM, unix.Mknod(m.path("dev"), unix.S_IFBLK|0o666, int(unix.Mkdev(1, 3))))
		require.NoError(t, unix.Mknod(m.below("char"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		_, err := os.Open(m.path("char"))
		require.ErrorIs(t, err, unix.EACCES)
		require.NoError(t, os.Mkdir(m.below("below"), 0o755))
		outside := scratch(t)
		require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o644))
		require.NoError(t, unix.Mount(outside, m.below("below"), "", unix.MS_BIND, ""))
		defer unix.Unmount(m.below("below"), unix.MNT_DETACH)
		for range 3 {
			_, err = os.ReadFile(m.path("below/secret"))
			require.ErrorIs(t, err, unix.EXDEV)
		}
		_, err = os.ReadDir(m.dir)
		require.NoError(t, err)
		logged := func() int { return strings.Count(m.log.String(), "not crossed") }
		require.Eventually(t, func() bool { return logged() > 0 }, patience, time.Millisecond, "its log comes by another way than its answers")
		require.Equal(t, 1, logged())
	})
}

// TestBug: a handler that panics fails its request only.
func TestBug(t *testing.T) {
	inModes(t, func(s *spec) { s.Track = true }, func(t *testing.T, m *mounted) {
		m.bugs = true
		cmd := exec.Command("sh", "-c", "echo x > f")
		cmd.Dir, cmd.Env = m.dir, append(os.Environ(), "TOOL=panic")
		require.Error(t, cmd.Run())
		m.sh("t", "echo x > g; cat g")
		require.Contains(t, m.log.String(), "failed by a bug")
	})
}

// TestForget: what the kernel forgets costs neither memory nor descriptors.
func TestForget(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		before, _ := m.command("stats")
		for d := range 60 {
			dir := m.path(fmt.Sprint("d", d))
			require.NoError(t, os.Mkdir(dir, 0o755))
			for f := range 50 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("f", f)), []byte("x"), 0o644))
			}
		}
		full, _ := m.command("stats")
		require.Less(t, full.FDs, before.FDs+100, "idle files have no descriptor")
		if os.Geteuid() != 0 {
			return
		}
		require.NoError(t, exec.Command("rm", "-rf", "--", m.path("d0")).Run())
		require.Eventually(t, func() bool {
			require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0))
			after, _ := m.command("stats")
			return after.Nodes < 20 && after.FDs <= before.FDs+2
		}, patience, 100*time.Millisecond)
	})
}

func TestLocks(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		f, err := os.Create(m.path("l"))
		require.NoError(t, err)
		defer f.Close()
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock))
		g, err := os.OpenFile(m.path("l"), os.O_RDWR, 0)
		require.NoError(t, err)
		defer g.Close()
		read := unix.Flock_t{Type: unix.F_RDLCK}
		require.Equal(t, unix.EAGAIN, unix.FcntlFlock(g.Fd(), unix.F_OFD_SETLK, &read))
		require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		require.Equal(t, unix.EWOULDBLOCK, unix.Flock(int(g.Fd()), unix.LOCK_SH|unix.LOCK_NB))
		m.sh("t", "echo 0 > c; for i in 1 2 3 4; do (for j in $(seq 25); do flock l2 sh -c 'n=$(cat c); echo $((n+1)) > c'; done) & done; wait; test $(cat c) = 100")
	})
}

func TestExclusive(t *testing.T) {
	inModes(t, func(s *spec) { s.Config.Exclusive = true }, func(t *testing.T, m *mounted) {
		m.sh("t", `mkdir d; for i in $(seq 50); do echo $i > d/$i; done; ls d | wc -l; rm d/7; test $(ls d | wc -l) = 49
			mv d/8 d/eight; test "$(cat d/eight)" = 8; test ! -e d/8; echo more >> d/eight; test $(wc -l < d/eight) = 2
			cp -a d e; diff -r d e; rm -rf d; test ! -e d`)
	})
}

func TestTools(t *testing.T) {
	inModes(t, nil, func(t *testing.T, m *mounted) {
		m.sh("t", `git init -q r && cd r && git config user.email a@b && git config user.name n
			for i in $(seq 100); do echo $i > $i.txt; done; git add -A; git commit -qm one; ln -s 1.txt link
			git mv 1.txt moved.txt; git add -A; git commit -qm two; git gc -q; git fsck --full --strict
			for i in 1 2 3 4 5; do git reset -q --hard HEAD~1; git reset -q --hard HEAD@{1}; done
			test -z "$(git status --porcelain)"`)
		m.sh("t", `cp -a r copy && diff -r r copy && tar cf r.tar r && mkdir x && tar xf r.tar -C x && diff -r r x/r
			rsync -a r/ s/ && test -z "$(rsync -ain r/ s/)"`)
		m.sh("t", `for mode in delete wal; do
			sqlite3 $mode.db "pragma journal_mode=$mode; create table t(a);" > /dev/null
			for w in 1 2 3 4; do (for i in $(seq 10); do sqlite3 -cmd ".timeout 10000" $mode.db "insert into t values($i)"; done) & done; wait
			test "$(sqlite3 $mode.db 'select count(*) from t')" = 40; test "$(sqlite3 $mode.db 'pragma integrity_check')" = ok; done`)
	})
}
