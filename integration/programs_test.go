package integration

import "testing"

// TestPrograms runs programs that people use on the mount as they would on the disk. Each script
// checks its own outcome.
func TestPrograms(t *testing.T) {
	git := `git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=main`
	cases := []struct{ name, script string }{
		{"git", `
			git() { command ` + git + ` "$@"; }
			mkdir r && cd r && git init -q
			for i in $(seq 300); do mkdir -p d$((i%7)); echo "line $i" > d$((i%7))/f$i.txt; done
			git add -A && git commit -qm one
			for i in $(seq 1 3 300); do echo more >> d$((i%7))/f$i.txt; done
			git commit -qam two
			git checkout -q -b side HEAD~ && git checkout -q main && git merge -q side
			git gc -q && git fsck --full --strict
			for i in 1 2 3 4 5; do git reset -q --hard HEAD~; git reset -q --hard HEAD@{1}; done
			test -z "$(git status --porcelain)"
			cd .. && git clone -q r c && diff -r --exclude .git r c
			test -z "$(find . -name '*.lock')"`},
		{"tar", `
			mkdir t && cd t
			mkdir -p a/b; echo x > a/b/f; chmod 640 a/b/f; ln a/b/f a/hard; ln -s b/f a/soft; mkfifo a/p; chmod 2775 a/b; touch -d '2001-02-03 04:05:06.123456789' a/b/f
			tar --format=pax -cf ../t.tar a && mkdir x && tar xpf ../t.tar -C x
			list() { find a ! -type d -printf '%P %y %m %s %l %T@ %n\n' | sort; }
			list > ../one; (cd x && list) > ../two; diff ../one ../two
			test "$(stat -c %a x/a/b)" = 2775`},
		{"sqlite with a rollback journal", `
			sqlite3 r.db 'create table t(a)'
			for p in 1 2 3 4; do (for i in $(seq 25); do sqlite3 -cmd '.timeout 20000' r.db 'insert into t values(1)'; done) & done; wait
			test "$(sqlite3 r.db 'select count(*) from t')" = 100 && test "$(sqlite3 r.db 'pragma integrity_check')" = ok`},
		{"sqlite with a write-ahead log", `
			sqlite3 w.db 'pragma journal_mode=wal; create table t(a)'
			for p in 1 2 3 4; do (for i in $(seq 25); do sqlite3 -cmd '.timeout 20000' w.db 'insert into t values(1)'; done) & done; wait
			test "$(sqlite3 w.db 'select count(*) from t')" = 100 && test "$(sqlite3 w.db 'pragma integrity_check')" = ok`},
		{"rsync twice", `
			mkdir -p s/a/b; for i in $(seq 50); do echo $i > s/a/b/f$i; done; ln -s b s/a/l; touch -d 2001-01-01 s/a/b/f1; chmod 700 s/a
			rsync -aH s/ d/; test -z "$(rsync -aHin s/ d/)"`},
		{"python's files", `
			python3 - <<'E'
import os, shutil, tempfile, mmap, pathlib
d = pathlib.Path('py'); d.mkdir()
(d/'a').write_bytes(os.urandom(1 << 20)); shutil.copy2(d/'a', d/'b'); assert (d/'a').read_bytes() == (d/'b').read_bytes()
assert abs((d/'a').stat().st_mtime_ns - (d/'b').stat().st_mtime_ns) < 1000
os.link(d/'a', d/'c'); assert os.stat(d/'c').st_nlink == 2
with tempfile.TemporaryFile(dir=d) as f: f.write(b'x'); f.flush(); assert os.fstat(f.fileno()).st_size == 1
with open(d/'u', 'w+b') as f:
    os.unlink(d/'u'); f.write(b'hello'); f.flush(); os.fchmod(f.fileno(), 0o600); os.ftruncate(f.fileno(), 3); os.utime(f.fileno(), (1, 2))
    s = os.fstat(f.fileno()); assert (s.st_size, s.st_mode & 0o777, s.st_mtime, s.st_nlink) == (3, 0o600, 2, 0), s
fd = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o644); os.write(fd, b'tmp'); os.link(f'/proc/self/fd/{fd}', d/'named', src_dir_fd=fd, follow_symlinks=True); os.close(fd)
assert (d/'named').read_bytes() == b'tmp'
with open(d/'h', 'wb') as f: f.truncate(1 << 20); f.seek(1 << 19); f.write(b'x')
with open(d/'h', 'rb') as f: assert os.lseek(f.fileno(), 0, os.SEEK_DATA) > 0 and os.lseek(f.fileno(), 1 << 19, os.SEEK_HOLE) <= 1 << 20
os.posix_fallocate(os.open(d/'h', os.O_RDWR), 0, 2 << 20); assert os.stat(d/'h').st_size == 2 << 20
a, b = os.open(d/'a', os.O_RDONLY), os.open(d/'k', os.O_RDWR | os.O_CREAT)
assert os.copy_file_range(a, b, 4096) == 4096
shutil.rmtree(d); assert not d.exists()
E`},
		{"an editor", `
			echo one > e.txt; vi -es -c '%s/one/two/' -c 'x' e.txt </dev/null; test "$(cat e.txt)" = two; test "$(ls -A | grep -c swp || true)" = 0`},
		{"a compiler", `
			printf '#include <stdio.h>\nint main(void){puts("built");}\n' > m.c
			printf 'm: m.o\n\tcc -o m m.o\nm.o: m.c\n\tcc -c m.c\n' > Makefile
			make -s -j4 m && test "$(./m)" = built && make -s m`},
		{"an archive of many small files", `
			mkdir many && cd many && seq 2000 | xargs -P4 -n50 touch && test "$(ls | wc -l)" = 2000 && rm -rf ../many && test ! -e ../many`},
	}
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { d.with(t).sh(c.script) })
		}
		d.ctl("check")
	})
}
