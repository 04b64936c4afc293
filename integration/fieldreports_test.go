package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFieldReports holds the mount against what broke for others (shared/field-reports.md): the
// rows that concern a local mount and need nothing but it. $M is the mount, $B the directory
// behind it, $TTL the cache timeout in seconds.
func TestFieldReports(t *testing.T) {
	cases := []struct{ id, script, want string }{
		{"F02", `git init -q $M/r && cat $M/r/.git/HEAD; ls $M/r/.git/*.lock 2>/dev/null || true`, "ref: refs/heads/master\n"},
		{"F03", `for i in $(seq 150); do mkdir -p $M/d$i; echo x>$M/t; mv $M/t $M/d$i/f; cat $M/d$i/f; done | sort | uniq -c | tr -s ' '`, " 150 x\n"},
		{"F05", `git init -q r; cd r; git config user.email e@e; git config user.name n
			(for i in $(seq 30); do for f in 1 2 3 4 5; do echo $i-$f > f$f; done; done) &
			for i in $(seq 10); do git add -A 2>/dev/null || true; git status >/dev/null; done; wait; git fsck --no-dangling; git status >/dev/null; echo ok`, "ok\n"},
		{"F06", `mkdir -p $M/n/.bin $M/n/p; echo b>$M/n/p/b.js; ln -s ../p/b.js $M/n/.bin/b; readlink $M/n/.bin/b; cat $M/n/.bin/b`, "../p/b.js\nb\n"},
		{"F07", `sqlite3 $M/d.db 'create table t(a)'; for p in 1 2 3 4; do (for i in $(seq 25); do sqlite3 -cmd ".timeout 20000" $M/d.db "insert into t values(1)"; done)& done; wait; sqlite3 $M/d.db 'select count(*) from t'`, "100\n"},
		{"F08", `sqlite3 $M/w.db "PRAGMA journal_mode=WAL; create table t(a); insert into t values(1); select * from t"`, "wal\n1\n"},
		{"F09", `python3 -c "import mmap;f=open('$M/m','w+b');f.write(b'0'*4096);f.flush();m=mmap.mmap(f.fileno(),4096);m[0]=65;m.flush()"; head -c1 $M/m`, "A"},
		{"F10", `echo 0 > $M/c; for w in 1 2 3 4 5 6 7 8; do (for i in $(seq 15); do flock $M/l -c "n=\$(cat $M/c); echo \$((n+1))>$M/c"; done)& done; wait; cat $M/c`, "120\n"},
		{"F11", `printf a>$M/f; printf b>$M/.f.tmp; mv $M/.f.tmp $M/f; cat $M/f`, "b"},
		{"F12", `python3 -c "import os;f=open('$M/a','w');f.write('hello');f.flush();os.rename('$M/a','$M/b');f.write('!');f.close()"; stat -c %s $M/b $B/b; ls $M/a 2>/dev/null || echo gone`, "6\n6\ngone\n"},
		{"F13", `mkdir $M/d; for i in $(seq 50); do echo $i>$M/d/$i; done; mv $M/d $M/e; rm -r $M/e; ls -A $B`, ""},
		{"F14", `exec 3>$M/o; sync; echo 2 > /proc/sys/vm/drop_caches; sleep $TTL; ls $M; exec 3>&-`, "o\n"},
		{"F15", `mkdir $M/e; mv $M/e $M/f; sleep $TTL; ls $M`, "f\n"},
		{"F16", `for p in 1 2 3 4; do (for i in $(seq 10); do head -c 20000 /dev/zero | tr '\0' $p > $M/t$p; mv $M/t$p $M/f; tr -d '\n' < $M/f | fold -w1 | sort -u | wc -l; done)& done | sort -u; wait`, "1\n"},
		{"F17", `echo x>$M/f; touch -d '2001-01-01 UTC' $M/f; sleep 2; stat -c %Y $M/f`, "978307200\n"},
		{"F18", `mkdir $M/q; for i in $(seq 20); do echo $i>$M/q/$i; done; rsync -a $M/q/ $M/s/; rsync -ain $M/q/ $M/s/`, ""},
		{"F19", `umask 0; mkdir -m 0777 $M/d; touch $M/f; stat -c %a $M/d $M/f`, "777\n666\n"},
		{"F20", `touch $M/l0; setfattr -n user.k -v $(head -c200 /dev/zero|tr '\0' Q) $M/l0; cp -a $M/l0 $M/l; for i in $(seq 50); do touch $M/z$i; done; getfattr --only-values -n user.k $M/l | tr -d Q | wc -c; getfattr --only-values -n user.k $M/l | wc -c`, "0\n200\n"},
		{"F21", `touch $M/f; setfattr -n user.MyKey -v 1 $M/f; setfattr -n user.mykey -v 2 $M/f; getfattr -d $M/f 2>/dev/null | grep user`, "user.MyKey=\"1\"\nuser.mykey=\"2\"\n"},
		{"F25", `exec 3>$M/f; (exec 3>&-); echo more>&3; exec 3>&-; cat $M/f; sh -c "echo a; /bin/echo b" > $M/g; cat $M/g`, "more\na\nb\n"},
		{"F27", `python3 -c "
import os; p='$M/p'; f=open(p,'w'); f.write('x'); os.unlink(p); f.close()"; ls -A $M $B`, "MOUNT:\n\nBACKING:\n"},
		{"F28", `echo hello>$M/f; sleep 1; : >$M/f; cat $M/f; stat -c %s $M/f`, "0\n"},
		{"F29", `echo foo>$M/t; echo bar>>$M/t; cat $M/t`, "foo\nbar\n"},
		{"F33", `touch "$M/$(printf 'a\377b')"; ls $M | od -An -tx1 | tr -d '\n'; touch $M/ok; ls $M/ok | wc -l`, " 61 ff 62 0a1\n"},
		{"F35", `n255=$(head -c255 /dev/zero|tr '\0' n); touch $M/$n255; ls $M | wc -c; (touch $M/${n255}x 2>&1 || true) | grep -o 'File name too long'; p=$(for i in $(seq 40); do printf "$(head -c99 /dev/zero|tr '\0' p)/"; done); cd $M; mkdir -p $p && echo deep > ${p}f && cat ${p}f && (printf $p; head -c 95 /dev/zero | tr '\0' x) | wc -c; (ls "$p$(head -c 95 /dev/zero | tr '\0' x)" 2>&1 || true) | grep -o "No such file"; (ls "$p$(head -c 96 /dev/zero | tr '\0' x)" 2>&1 || true) | grep -o "File name too long"`, "256\nFile name too long\ndeep\n4095\nNo such file\nFile name too long\n"},
		{"F37", `mkdir $M/big; (cd $M/big; seq 6000 | xargs -n1000 touch); python3 - <<E
import os, threading
d = os.path.join('$M', 'big'); names = []
it = os.scandir(d)
gone = set()
for i, e in enumerate(it):
    names.append(e.name)
    if i == 100:
        for j in range(1, 6001, 2): os.unlink(f'{d}/{j}'); gone.add(str(j))
assert len(names) == len(set(names)), 'duplicates'
missing = {str(j) for j in range(1, 6001)} - gone - set(names)
assert not missing, len(missing)
print('ok')
E`, "ok\n"},
		{"F38", `ls $M >/dev/null; echo x > $B/new; sleep $TTL; ls $M`, "new\n"},
		{"F39", `mkdir $M/d; exec 3>$M/d/f; rm -r $M/d || true; exec 3>&-; ls -A $M $B`, "MOUNT:\n\nBACKING:\n"},
		{"F40", `mkdir $M/d; echo x>$M/d/f; stat $M/d/f >/dev/null; echo longer>$B/d/f; touch -d '2002-02-02 UTC' $B/d/f; sleep $TTL; stat -c '%s %Y' $M/d/f`, "7 1012608000\n"},
		{"F42", `echo one>$M/f; cat $M/f; sleep $TTL; echo two>$B/f; sleep $TTL; cat $M/f`, "one\ntwo\n"},
		{"F48", `mkdir $M/d; echo x>$M/d/f; chmod 700 $M/d; (sudo -u nobody cat $M/d/f 2>&1 || true) | grep -o 'Permission denied'`, "Permission denied\n"},
		{"F50", `echo x>$M/f; for p in 1 2 3 4; do (for i in $(seq 30); do ln $M/f $M/l$p; cp --reflink=auto $M/l$p $M/c$p; mv $M/c$p $M/m$p; rm $M/l$p; done)& done; wait; echo ok`, "ok\n"},
		{"F51", `python3 - <<E
import os
open('/proc/sys/vm/drop_caches', 'w').write('2')
fs = [open(f'$M/f{i}', 'w') for i in range(2000)]
for i, f in enumerate(fs):
    if i % 500 == 0: open('/proc/sys/vm/drop_caches', 'w').write('2')
    f.write(str(i)); f.flush()
for f in fs: f.close()
assert all(open(f'$M/f{i}').read() == str(i) for i in range(2000))
print('ok')
E`, "ok\n"},
		{"F52", `head -c 8192 /dev/urandom > $M/f; dd if=$M/f iflag=direct bs=4k status=none | cmp - $B/f && echo same`, "same\n"},
	}
	modes(t, func(t *testing.T, mode string) {
		d := startMount(t, mode, "--allow-other", "--cache-timeout", "500ms")
		for _, c := range cases {
			t.Run(c.id, func(t *testing.T) {
				d := d.with(t)
				d.sh(`cd $M && find . -mindepth 1 -delete`, "M="+d.mnt)
				got := d.sh(c.script, "M="+d.mnt, "B="+d.source, "TTL=1", "GIT_CONFIG_GLOBAL=/dev/null")
				got = strings.ReplaceAll(strings.ReplaceAll(got, d.mnt, "MOUNT"), d.source, "BACKING")
				require.Equal(t, c.want, got)
			})
		}
	})
}

// TestForeignPIDNamespace is F49: where the daemon cannot see who wrote, it says so.
func TestForeignPIDNamespace(t *testing.T) {
	d := newDaemon(t)
	d.args = []string{"mount", d.source, d.mnt}
	d.inPIDNamespace = true
	d.start()
	d.sh(`echo x > a.txt`, "VFSD_TOOL_USE_ID=call_1")
	raw := d.sh(`getfattr --only-values -n user.aimon.attribution a.txt`)
	require.Contains(t, []string{"none", "ambiguous"}, raw)
}
