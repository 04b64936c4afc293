package integration

import "strings"

// writer is a way in which a tool writes. Its script has $ID, the tool use, $F, what the names of its files
// begin with, and in $T a directory of its own outside of the mount. Every name that it makes says whose it is.
type writer struct {
	name   string
	begin  string // how it is started: run, declare, nobody
	script string
	// loses says that without a cgroup nothing tells the writer from others: it left its line and cleared
	// its environment, or nobody can read it to its end. Its answer may then be ambiguous or none. A script can
	// also say so of a file, by "lost" in its name.
	loses bool
}

// The ways to start.
const (
	byRun     = "run"     // vfsctl run
	byDeclare = "declare" // VFSD_TOOL_USE_ID alone
	byNobody  = "nobody"  // no tool use: the truth is that there is none
)

// write is a shell function that is defined for every script.
const prelude = `
write() { for ((i = 1; i <= N; i++)); do echo "$ID" > "$F-$1-$i"; done; }
one() { echo "$ID" > "$F-$1"; }
export -f write one
export F ID T
`

var writers = []writer{
	{"plain", byRun, `write a; cp "$F-a-1" "$F-b"; mv "$F-a-2" "$F-c"; ln "$F-a-3" "$F-d"; echo >> "$F-b"`, false},
	{"pipeline", byRun, `seq 50 | tee "$F-a" | sort -r | tee "$F-b" | (cat > "$F-c"; write d)`, false},
	{"make", byRun, `printf 'all: 1 2 3 4 5 6 7 8\n%%:\n\t@echo %s > %s-$@\n' "$ID" "$F" > "$T/m"; make -s -j4 -f "$T/m"`, false},
	{"xargs", byRun, `seq 12 | xargs -P4 -I{} sh -c 'echo "$ID" > "$F-{}"'`, false},
	{"redirect of the shell", byRun, `{ printf x; sh -c 'echo y'; } > "$F-a"; exec 7> "$F-b"; sh -c 'echo z >&7'`, false},
	{"new session", byRun, `setsid -w bash -c 'write a'`, false},
	{"nohup", byRun, `nohup bash -c 'write a' >/dev/null 2>&1 & wait`, false},
	{"double fork", byRun, `(setsid bash -c 'sleep 0.05; write a' >/dev/null 2>&1 &)`, false},
	{"late", byRun, `(sleep 0.3; write a; setsid bash -c 'sleep 0.1; write b') >/dev/null 2>&1 &`, false},
	{"empty environment", byRun, `env -i /bin/sh -c "for i in 1 2 3; do echo x > '$F'-\$i; done"; env -i touch "$F-b"`, false},
	{"daemon of empty environment", byRun, `(env -i setsid /bin/sh -c "sleep 0.1; for i in 1 2 3; do echo x > '$F'-\$i; sleep 0.1; done" >/dev/null 2>&1 &)`, true},
	{"pid namespace", byRun, `unshare -pf --kill-child bash -c 'write a; (bash -c "write b")'`, false},
	{"bubblewrap", byRun, `bwrap --dev-bind / / --unshare-pid --unshare-ipc bash -c 'write a; (write b) & wait'`, false},
	{"user namespace", byRun, `unshare -Ur bash -c 'write a'`, false},
	{"threads", byRun, `python3 -c '
import os, threading
def w(i):
    for k in range(4):
        open("%s-%d-%d" % (os.environ["F"], i, k), "w").write("x")
all = [threading.Thread(target=w, args=(i,)) for i in range(4)]
[t.start() for t in all]; [t.join() for t in all]'`, false},
	{"nameless then linked", byRun, `python3 -c '
import os
f = os.environ["F"]
fd = os.open(os.path.dirname(f) or ".", os.O_TMPFILE | os.O_RDWR)
os.write(fd, b"x")
os.link("/proc/self/fd/%d" % fd, f + "-a", src_dir_fd=os.open("/", os.O_PATH), follow_symlinks=True)'`, false},
	{"spawned with open files", byRun, `python3 -c '
import os
f = os.environ["F"]
for i in range(4):
    p = os.posix_spawn("/bin/echo", ["echo", "x"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, f + "-%d" % i, os.O_WRONLY | os.O_CREAT, 0o644)])
    os.waitpid(p, 0)'`, false},
	{"killed", byRun, `(bash -c 'sleep 0.1; write b' >/dev/null 2>&1 &); write a; kill -9 $$`, false},
	{"names another", byRun, `VFSD_TOOL_USE_ID=lie-of-$ID bash -c 'write a'; VFSD_TOOL_USE_ID= bash -c 'write b'`, false},
	{"sub-agent", byRun, `write a
sub=$ID.sub; SF=${F/$ID/$sub}
vfsctl run --tool-use "$sub" -- env F="$SF" ID="$sub" bash -c 'write a; (setsid bash -c "write b" &)'
write b`, false},
	{"sub-agents at once", byRun, `for n in 1 2 3; do sub=$ID.$n; vfsctl run --tool-use "$sub" -- env F="${F/$ID/$sub}" ID="$sub" bash -c 'write a' & done; write c; wait`, false},
	{"declared", byDeclare, `write a; seq 6 | xargs -P3 -I{} sh -c 'echo > "$F-x{}"'; env -i touch "$F-e"; :`, false},
	{"declared daemon", byDeclare, `(setsid bash -c 'sleep 0.1; write a' >/dev/null 2>&1 &)`, false},
	{"declared in a mass", byDeclare, `export BIG=$(head -c 100000 /dev/zero | tr '\0' x); export BIG2=$BIG; write a; touch "$F-b"`, true},
	{"declared execs another", byDeclare, `write a; sub=$ID.sub; exec env VFSD_TOOL_USE_ID="$sub" F="${F/$ID/$sub}" ID="$sub" bash -c 'write a; write b'`, false},
	{"invalid id", byNobody, `export VFSD_TOOL_USE_ID=$(printf 'a\001b'); bash -c 'write a'`, true},
	{"persistent shell", byNobody, persistent, false},
}

// alone are writers that are known by nothing but that one tool use is open: they run while nothing else does.
var alone = []writer{
	{"window", byNobody, `
whole=$ID base=$F
begin() { ID=$whole.$1; F=${base/$whole/$ID}; export ID F; vfsctl tool begin "$ID" >/dev/null; }
begin 1
write self; bash -c 'write child'; env -i touch "$F-empty"
(setsid bash -c 'sleep 0.3; write lost; bash -c "write lost2"' >/dev/null 2>&1 &)
bash -c 'sleep 0.4; write lost3' >/dev/null 2>&1 &
vfsctl tool end "$ID" >/dev/null
begin 2
write self; bash -c 'sleep 0.6; write child'
vfsctl tool end "$ID" >/dev/null`, false},
	{"two windows", byNobody, `
whole=$ID base=$F
vfsctl tool begin "$whole.1" >/dev/null; vfsctl tool begin "$whole.2" >/dev/null
ID=$whole.1 F=${base/$whole/$whole.1}
write lost; (setsid env -i /bin/sh -c "sleep 0.3; echo x > '$F-lost-late'" >/dev/null 2>&1 &)
vfsctl tool end "$whole.1" >/dev/null
ID=$whole.2 F=${base/$whole/$whole.2}
write self; sleep 0.5
vfsctl tool end "$whole.2" >/dev/null`, false},
	{"run beside a window", byNobody, `
whole=$ID base=$F
vfsctl tool begin "$whole.1" >/dev/null
F=${base/$whole/$whole.2} ID=$whole.2 vfsctl run --tool-use "$whole.2" -- bash -c 'write a; env -i touch "$F-b"'
ID=$whole.1 F=${base/$whole/$whole.1}
write self
vfsctl tool end "$whole.1" >/dev/null`, false},
}

// persistent serves three tool uses with one shell, by itself, with children and with jobs that go on into the time of
// the next one.
const persistent = `
base=$F; whole=$ID
for n in 1 2 3; do
  ID=$whole.$n; F=${base/$whole/$ID}; export ID F
  vfsctl tool begin "$ID" --pid $$ >/dev/null
  one self
  bash -c 'write child; sleep 0.2; write job' >/dev/null 2>&1 &
  bash -c 'write done'
  echo x | tee "$F-tee" >/dev/null
  vfsctl tool end "$ID" >/dev/null
done
`

// owner returns the tool use that made a file of that path, "" for none.
func owner(path string) (kind, id string) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	kind, rest, _ := strings.Cut(name, "__")
	id, _, _ = strings.Cut(rest, "__")
	return kind, id
}
