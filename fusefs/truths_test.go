package fusefs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

const nobody = 65534

var truths = map[string]func(o *outcome){
	"modes":            truthModes,
	"umask":            truthUmask,
	"owners":           truthOwners,
	"setgid directory": truthSetgid,
	"set-id on write":  truthSetIDWrite,
	"set-id on chown":  truthSetIDChown,
	"permissions":      truthPermissions,
	"sticky":           truthSticky,
	"acl":              truthACL,
	"hard links":       truthLinks,
	"symlinks":         truthSymlinks,
	"xattrs":           truthXattrs,
	"rename":           truthRename,
	"rename open":      truthRenameOpen,
	"tmpfile":          truthTmpfile,
	"fallocate":        truthFallocate,
	"copy_file_range":  truthCopy,
	"mmap":             truthMmap,
	"append":           truthAppend,
	"unlinked":         truthUnlinked,
	"removed cwd":      truthRemovedCwd,
	"long path":        truthLongPath,
	"odd names":        truthNames,
	"times":            truthTimes,
	"nodes":            truthNodes,
	"trunc":            truthTrunc,
	"protected":        truthProtected,
	"open errors":      truthOpenErrors,
	"o_direct":         truthDirect,
	"read write":       truthReadWrite,
	"big directory":    truthBigDirectory,
	"exec":             truthExec,
	"stat while open":  truthStatOpen,
}

func truthModes(o *outcome) {
	o.umask(0, func() {
		for _, m := range []uint32{0, 0o400, 0o644, 0o777, 0o4755, 0o2755, 0o1777, 0o7777, 0o2644} {
			name := fmt.Sprintf("%o", m)
			unix.Close(o.create("f"+name, unix.O_RDWR, m))
			o.stat("f" + name)
			o.say("mkdir %v", unix.Mkdir(o.path("d"+name), m))
			o.stat("d" + name)
			o.say("chmod %v", unix.Chmod(o.path("f"+name), m^0o7777))
			o.stat("f" + name)
			o.say("chmod %v", unix.Chmod(o.path("d"+name), m))
			o.stat("d" + name)
		}
	})
}

func truthUmask(o *outcome) {
	o.umask(0o027, func() {
		unix.Close(o.create("f", unix.O_RDWR, 0o666))
		o.say("%v", unix.Mkdir(o.path("d"), 0o777))
		o.say("%v", unix.Mknod(o.path("p"), unix.S_IFIFO|0o666, 0))
	})
	for _, n := range []string{"f", "d", "p"} {
		o.stat(n)
	}
}

func truthOwners(o *outcome) {
	o.as(nobody, 1234, []int{77}, func() {
		unix.Close(o.create("f", unix.O_RDWR, 0o644))
		o.say("%v", unix.Mkdir(o.path("d"), 0o755))
		o.say("%v", unix.Symlink("x", o.path("l")))
		o.say("%v", unix.Mknod(o.path("p"), unix.S_IFIFO|0o644, 0))
		unix.Close(o.create("s", unix.O_RDWR, 0o6755))
		o.say("chgrp to a group of mine: %v", unix.Chown(o.path("f"), -1, 77))
		o.say("chgrp to another: %v", unix.Chown(o.path("f"), -1, 78))
		o.say("chown: %v", unix.Chown(o.path("d"), 0, -1))
	})
	for _, n := range []string{"f", "d", "l", "p", "s"} {
		o.stat(n)
	}
	o.say("%v", unix.Lchown(o.path("l"), 5, 6))
	o.stat("l")
}

func truthSetgid(o *outcome) {
	o.must(unix.Mkdir(o.path("g"), 0o777))
	o.must(unix.Chown(o.path("g"), 0, 4321))
	o.must(unix.Chmod(o.path("g"), 0o2777))
	make := func(p string) {
		unix.Close(o.create("g/"+p+"f", unix.O_RDWR, 0o644))
		unix.Close(o.create("g/"+p+"s", unix.O_RDWR, 0o2755))
		o.say("%v", unix.Mkdir(o.path("g/"+p+"d"), 0o755))
	}
	make("root")
	o.as(nobody, nobody, nil, func() { make("nobody") })
	o.as(nobody, nobody, []int{4321}, func() { make("member") })
	for _, p := range []string{"root", "nobody", "member"} {
		o.stat("g/" + p + "f")
		o.stat("g/" + p + "s")
		o.stat("g/" + p + "d")
	}
}

func truthSetIDWrite(o *outcome) {
	for _, how := range []string{"write", "truncate", "ftruncate", "otrunc", "fallocate"} {
		for _, m := range []uint32{0o6777, 0o2767, 0o2777} {
			for _, uid := range []int{0, nobody} {
				name := fmt.Sprintf("%s-%o-%d", how, m, uid)
				o.file(name, 0o666, "hello")
				o.must(unix.Chmod(o.path(name), m))
				o.as(uid, uid, nil, func() {
					flags := unix.O_RDWR
					if how == "otrunc" {
						flags |= unix.O_TRUNC
					}
					fd, err := unix.Open(o.path(name), flags, 0)
					if err != nil {
						o.say("open %v", err)
						return
					}
					switch how {
					case "write":
						_, err = unix.Write(fd, []byte("x"))
					case "truncate":
						err = unix.Truncate(o.path(name), 2)
					case "ftruncate":
						err = unix.Ftruncate(fd, 2)
					case "fallocate":
						err = unix.Fallocate(fd, 0, 0, 100)
					}
					o.say("%v", err)
					unix.Close(fd)
				})
				o.stat(name)
			}
		}
	}
}

func truthSetIDChown(o *outcome) {
	for _, m := range []uint32{0o6777, 0o2767} {
		for _, uid := range []int{0, nobody} {
			name := fmt.Sprintf("%o-%d", m, uid)
			o.file(name, 0o666, "hello")
			o.must(unix.Chown(o.path(name), uid, uid))
			o.must(unix.Chmod(o.path(name), m))
			o.as(uid, uid, []int{99}, func() { o.say("%v", unix.Chown(o.path(name), -1, 99)) })
			o.stat(name)
		}
	}
}

func truthPermissions(o *outcome) {
	o.file("f", 0o640, "x")
	o.must(unix.Mkdir(o.path("closed"), 0o700))
	o.file("closed/f", 0o666, "x")
	o.must(unix.Mkdir(o.path("grp"), 0o770))
	o.must(unix.Chown(o.path("grp"), 0, 55))
	o.must(unix.Chmod(o.path("grp"), 0o770))
	o.as(nobody, nobody, nil, func() {
		_, err := os.ReadFile(o.path("f"))
		o.say("%v", err)
		_, err = os.ReadFile(o.path("closed/f"))
		o.say("%v", err)
		_, err = os.ReadDir(o.path("closed"))
		o.say("%v", err)
		o.say("%v", unix.Access(o.path("f"), unix.W_OK))
		o.say("%v", unix.Unlink(o.path("closed/f")))
		o.say("%v", unix.Mkdir(o.path("grp/x"), 0o755))
		o.say("%v", unix.Chmod(o.path("f"), 0o777))
		o.say("%v", unix.Utimes(o.path("f"), []unix.Timeval{{Sec: 1}, {Sec: 1}}))
	})
	o.as(nobody, nobody, []int{55}, func() {
		o.say("member: %v", unix.Mkdir(o.path("grp/x"), 0o755))
		unix.Close(o.create("grp/none", unix.O_RDWR, 0))
		_, err := os.ReadFile(o.path("grp/none"))
		o.say("mode 000: %v", err)
	})
	o.stat("grp/x")
}

func truthSticky(o *outcome) {
	o.must(unix.Mkdir(o.path("t"), 0o777))
	o.must(unix.Chmod(o.path("t"), 0o1777))
	o.file("t/roots", 0o666, "x")
	o.as(nobody, nobody, nil, func() {
		o.say("%v", unix.Unlink(o.path("t/roots")))
		o.say("%v", unix.Rename(o.path("t/roots"), o.path("t/mine")))
		unix.Close(o.create("t/own", unix.O_RDWR, 0o644))
		o.say("%v", unix.Unlink(o.path("t/own")))
	})
}

func (o *outcome) run(name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Dir = o.dir
	out, err := cmd.CombinedOutput()
	o.say("%s %s: %v %s", name, strings.Join(args, " "), err, strings.ReplaceAll(string(out), o.dir, "DIR"))
}

func truthACL(o *outcome) {
	o.file("f", 0o600, "x")
	o.run("setfacl", "-m", "u:nobody:r,g:77:rw", "f")
	o.run("getfacl", "-n", "f")
	o.as(nobody, nobody, nil, func() {
		b, err := os.ReadFile(o.path("f"))
		o.say("%s %v", b, err)
		o.say("%v", os.WriteFile(o.path("f"), []byte("y"), 0))
	})
	o.must(unix.Mkdir(o.path("d"), 0o755))
	o.run("setfacl", "-d", "-m", "u:nobody:rwx,o::-", "d")
	o.umask(0o077, func() {
		unix.Close(o.create("d/f", unix.O_RDWR, 0o666))
		o.say("%v", unix.Mkdir(o.path("d/sub"), 0o777))
	})
	o.run("getfacl", "-n", "d/f", "d/sub")
	o.say("%v", unix.Chmod(o.path("d/f"), 0o640))
	o.run("getfacl", "-n", "d/f")
	o.run("setfacl", "-b", "f")
	o.run("getfacl", "-n", "f")
}

func truthLinks(o *outcome) {
	o.file("a", 0o644, "text")
	o.must(unix.Mkdir(o.path("d"), 0o755))
	o.say("%v", unix.Link(o.path("a"), o.path("d/b")))
	o.say("%v", unix.Link(o.path("a"), o.path("d/b")))
	o.say("%v", unix.Link(o.path("d"), o.path("e")))
	var a, b unix.Stat_t
	o.must(unix.Stat(o.path("a"), &a))
	o.must(unix.Stat(o.path("d/b"), &b))
	o.say("same inode: %v", a.Ino == b.Ino)
	o.file("d/b", 0, "TEXT")
	o.say("rename onto itself: %v", unix.Rename(o.path("a"), o.path("d/b")))
	o.stat("a")
	o.say("%v", unix.Unlink(o.path("a")))
	o.stat("d/b")
	c, err := os.ReadFile(o.path("d/b"))
	o.say("%s %v", c, err)
	o.say("%v", unix.Symlink("nowhere", o.path("l")))
	o.say("%v", unix.Linkat(unix.AT_FDCWD, o.path("l"), unix.AT_FDCWD, o.path("l2"), 0))
	o.stat("l2")
}

func truthSymlinks(o *outcome) {
	for i, text := range []string{"x", "../../etc/passwd", "/abs/olute", "with space\n\xff", strings.Repeat("y", 4095), "a//b/./c/"} {
		name := fmt.Sprint(i)
		o.say("%v", unix.Symlink(text, o.path(name)))
		buf := make([]byte, 5000)
		n, err := unix.Readlink(o.path(name), buf)
		o.say("%q %v", buf[:max(n, 0)], err)
		o.stat(name)
	}
	o.say("%v", unix.Symlink("", o.path("e")))
	_, err := unix.Open(o.path("0"), unix.O_NOFOLLOW|unix.O_RDONLY, 0)
	o.say("%v", err)
	o.file("x", 0o644, "through")
	b, err := os.ReadFile(o.path("0"))
	o.say("%s %v", b, err)
}

func truthXattrs(o *outcome) {
	o.file("f", 0o644, "x")
	p := o.path("f")
	o.say("%v", unix.Setxattr(p, "user.a", []byte("1"), unix.XATTR_REPLACE))
	o.say("%v", unix.Setxattr(p, "user.a", []byte("1\x00\xff"), unix.XATTR_CREATE))
	o.say("%v", unix.Setxattr(p, "user.a", []byte("2"), unix.XATTR_CREATE))
	o.say("%v", unix.Setxattr(p, "user.a", []byte("22"), unix.XATTR_REPLACE))
	o.say("%v", unix.Setxattr(p, "user.A", nil, 0))
	buf := make([]byte, 100)
	n, err := unix.Getxattr(p, "user.a", buf)
	o.say("%q %v", buf[:max(n, 0)], err)
	n, err = unix.Getxattr(p, "user.A", buf)
	o.say("%d %v", n, err)
	n, err = unix.Getxattr(p, "user.a", buf[:1])
	o.say("%d %v", n, err)
	n, err = unix.Getxattr(p, "user.none", buf)
	o.say("%d %v", n, err)
	n, err = unix.Listxattr(p, buf)
	list := strings.Split(string(buf[:max(n, 0)]), "\x00")
	sort.Strings(list)
	o.say("%q %v", list, err)
	o.say("%v", unix.Removexattr(p, "user.a"))
	o.say("%v", unix.Removexattr(p, "user.a"))
	o.say("%v", unix.Setxattr(p, "nonsense", nil, 0))
	o.say("big: %v", unix.Setxattr(p, "user.big", make([]byte, 70000), 0))
	o.say("%v", unix.Symlink("f", o.path("l")))
	o.say("%v", unix.Lsetxattr(o.path("l"), "user.x", nil, 0))
	o.say("%v", unix.Lsetxattr(o.path("l"), "trusted.x", []byte("t"), 0))
	n, err = unix.Llistxattr(o.path("l"), buf)
	o.say("%q %v", buf[:max(n, 0)], err)
	o.say("%v", unix.Setxattr(p, "trusted.y", []byte("t"), 0))
	o.as(nobody, nobody, nil, func() {
		n, err := unix.Listxattr(p, buf)
		o.say("%q %v", buf[:max(n, 0)], err)
		o.say("%v", unix.Setxattr(p, "user.n", nil, 0))
	})
	o.must(unix.Mkdir(o.path("d"), 0o755))
	o.say("%v", unix.Setxattr(o.path("d"), "user.d", []byte("1"), 0))
}

func truthRename(o *outcome) {
	r := func(from, to string, flags uint) {
		o.say("%s %s %d: %v", from, to, flags, unix.Renameat2(unix.AT_FDCWD, o.path(from), unix.AT_FDCWD, o.path(to), flags))
	}
	o.file("a", 0o644, "a")
	o.file("b", 0o644, "b")
	for _, d := range []string{"d", "d/sub", "e", "full"} {
		o.must(unix.Mkdir(o.path(d), 0o755))
	}
	o.file("full/x", 0o644, "x")
	r("a", "b", unix.RENAME_NOREPLACE)
	r("a", "c", unix.RENAME_NOREPLACE)
	r("b", "c", unix.RENAME_EXCHANGE)
	r("b", "none", unix.RENAME_EXCHANGE)
	r("d", "c", unix.RENAME_EXCHANGE)
	o.stat("d")
	o.stat("c")
	r("c", "d", unix.RENAME_EXCHANGE)
	r("d", "d/sub/x", 0)
	r("d", "full", 0)
	r("full", "e", 0)
	r("b", "e", 0)
	r("e", "b", 0)
	r("none", "x", 0)
	r("d", "e/moved", 0)
	r("b", "e/moved/sub/b", 0)
	r("e/moved/sub/b", "c", 0)
	r("a", "b", unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE)
	for _, n := range []string{"a", "b", "c", "d", "e/moved/sub", "e/x"} {
		b, err := os.ReadFile(o.path(n))
		o.say("%s: %s %v", n, b, err)
	}
	o.say("%v", unix.Rmdir(o.path("e")))
	o.say("%v", unix.Unlink(o.path("e")))
	o.say("%v", unix.Rmdir(o.path("c")))
}

func truthRenameOpen(o *outcome) {
	o.file("target", 0o644, "old")
	old, err := os.Open(o.path("target"))
	o.must(err)
	defer old.Close()
	f, err := os.Create(o.path("temp"))
	o.must(err)
	f.WriteString("new")
	o.say("%v", os.Rename(o.path("temp"), o.path("target")))
	f.WriteString("!")
	st, err := f.Stat()
	o.say("%d %v", st.Size(), err)
	f.Close()
	b, err := os.ReadFile(o.path("target"))
	o.say("%s %v", b, err)
	buf := make([]byte, 10)
	n, err := old.Read(buf)
	o.say("%s %v", buf[:n], err)
	var ost unix.Stat_t
	o.say("%v", unix.Fstat(int(old.Fd()), &ost))
	o.say("nlink %d size %d", ost.Nlink, ost.Size)
}

func truthTmpfile(o *outcome) {
	fd, err := unix.Open(o.dir, unix.O_TMPFILE|unix.O_RDWR, 0o640)
	o.say("%v", err)
	if err != nil {
		return
	}
	unix.Write(fd, []byte("nameless"))
	var st unix.Stat_t
	o.say("%v", unix.Fstat(fd, &st))
	o.say("nlink %d size %d mode %o", st.Nlink, st.Size, st.Mode)
	o.say("%v", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, o.path("named"), unix.AT_SYMLINK_FOLLOW))
	o.stat("named")
	unix.Close(fd)
	b, err := os.ReadFile(o.path("named"))
	o.say("%s %v", b, err)
	fd, err = unix.Open(o.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL, 0o640)
	o.say("%v", err)
	o.say("%v", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, o.path("never"), unix.AT_SYMLINK_FOLLOW))
	unix.Close(fd)
}

func truthFallocate(o *outcome) {
	fd := o.create("f", unix.O_RDWR, 0o644)
	defer unix.Close(fd)
	o.say("%v", unix.Fallocate(fd, 0, 0, 1<<20))
	o.stat("f")
	unix.Pwrite(fd, bytes.Repeat([]byte("x"), 1<<20), 0)
	o.say("%v", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 65536, 131072))
	o.say("%v", unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, 2<<20))
	o.say("%v", unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 0, 4096))
	o.say("%v", unix.Fsync(fd))
	for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
		for _, off := range []int64{0, 70000, 1 << 20, 1<<20 - 1} {
			n, err := unix.Seek(fd, off, whence)
			o.say("%d %d: %d %v", whence, off, n, err)
		}
	}
	b := make([]byte, 10)
	n, err := unix.Pread(fd, b, 65530)
	o.say("%q %d %v", b, n, err)
	o.say("%v", unix.Ftruncate(fd, 100))
	o.say("%v", unix.Ftruncate(fd, 200))
	n, err = unix.Pread(fd, b, 95)
	o.say("%q %d %v", b, n, err)
	o.stat("f")
}

func truthCopy(o *outcome) {
	o.file("from", 0o644, strings.Repeat("0123456789", 5000))
	from, err := unix.Open(o.path("from"), unix.O_RDONLY, 0)
	o.must(err)
	to := o.create("to", unix.O_RDWR, 0o644)
	n, err := unix.CopyFileRange(from, nil, to, nil, 40000, 0)
	o.say("%d %v", n, err)
	o.stat("to")
	b, err := os.ReadFile(o.path("to"))
	o.say("%v %v", bytes.Equal(b, bytes.Repeat([]byte("0123456789"), 4000)), err)
	unix.Close(from)
	unix.Close(to)
}

func truthMmap(o *outcome) {
	fd := o.create("m", unix.O_RDWR, 0o644)
	o.must(unix.Ftruncate(fd, 8192))
	m, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	o.say("%v", err)
	p, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	o.say("%v", err)
	m[5] = 'A'
	p[4096] = 'P'
	other, err := os.ReadFile(o.path("m"))
	o.say("%q %q %v", other[5], other[4096], err)
	unix.Pwrite(fd, []byte("B"), 6)
	o.say("%q", m[6])
	unix.Close(fd)
	m[7] = 'C'
	o.say("%v", unix.Msync(m, unix.MS_SYNC))
	unix.Munmap(m)
	unix.Munmap(p)
	b, err := os.ReadFile(o.path("m"))
	o.say("%q %v", b[4:9], err)
}

func truthAppend(o *outcome) {
	done := make(chan bool)
	for w := range 4 {
		go func() {
			f, err := os.OpenFile(o.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err == nil {
				for range 200 {
					f.WriteString(strings.Repeat(string(rune('a'+w)), 49) + "\n")
				}
				f.Close()
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	b, err := os.ReadFile(o.path("log"))
	torn := 0
	for _, l := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if len(l) != 49 || strings.Trim(l, l[:1]) != "" {
			torn++
		}
	}
	o.say("%d bytes, %d torn, %v", len(b), torn, err)
}

func truthUnlinked(o *outcome) {
	fd := o.create("f", unix.O_RDWR, 0o644)
	unix.Write(fd, []byte("hello"))
	o.say("%v", unix.Unlink(o.path("f")))
	o.file("f", 0o600, "another")
	o.say("%v", unix.Fchmod(fd, 0o4711))
	o.say("%v", unix.Fchown(fd, 5, 6))
	o.say("%v", unix.Ftruncate(fd, 3))
	o.say("%v", unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), []unix.Timespec{{Sec: 7}, {Sec: 8, Nsec: 9}}, 0))
	o.say("%v", unix.Fsetxattr(fd, "user.x", []byte("1"), 0))
	var st unix.Stat_t
	o.say("%v", unix.Fstat(fd, &st))
	o.say("mode %o uid %d nlink %d size %d mtime %d.%d", st.Mode, st.Uid, st.Nlink, st.Size, st.Mtim.Sec, st.Mtim.Nsec)
	n, err := unix.Pwrite(fd, []byte("more"), 3)
	o.say("%d %v", n, err)
	b := make([]byte, 20)
	n, err = unix.Pread(fd, b, 0)
	o.say("%q %v", b[:n], err)
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY, 0)
	o.say("reopen: %v", err)
	if err == nil {
		again.Close()
	}
	o.say("relink: %v", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, o.path("back"), unix.AT_SYMLINK_FOLLOW))
	unix.Close(fd)
	o.stat("f")
	// By a descriptor that is not open for anything.
	o.file("g", 0o644, "x")
	p, err := unix.Open(o.path("g"), unix.O_PATH, 0)
	o.say("%v", err)
	o.say("%v", unix.Unlink(o.path("g")))
	o.say("%v nlink %d", unix.Fstat(p, &st), st.Nlink)
	unix.Close(p)
}

func truthRemovedCwd(o *outcome) {
	o.must(unix.Mkdir(o.path("d"), 0o755))
	fd, err := unix.Open(o.path("d"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	o.say("%v", err)
	o.say("%v", unix.Rmdir(o.path("d")))
	var st unix.Stat_t
	o.say("%v", unix.Fstat(fd, &st))
	o.say("%v", unix.Fstatat(fd, "x", &st, 0))
	o.say("%v", unix.Mkdirat(fd, "x", 0o755))
	_, err = unix.Openat(fd, "f", unix.O_CREAT|unix.O_RDWR, 0o644)
	o.say("%v", err)
	unix.Close(fd)
}

func truthLongPath(o *outcome) {
	at, err := unix.Open(o.dir, unix.O_PATH, 0)
	o.must(err)
	name := strings.Repeat("n", 255)
	for range 20 { // 5,120 bytes deep
		o.must(unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		o.must(err)
		unix.Close(at)
		at = next
	}
	fd, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_RDWR, 0o644)
	o.say("%v", err)
	n, err := unix.Write(fd, []byte("deep"))
	o.say("%d %v", n, err)
	unix.Close(fd)
	var st unix.Stat_t
	o.say("%v %d", unix.Fstatat(at, "f", &st, 0), st.Size)
	unix.Close(at)
	_, err = unix.Open(o.path(name+"n"), unix.O_CREAT|unix.O_RDWR, 0o644)
	o.say("256: %v", err)
	o.say("%v", unix.Mkdir(o.path(name+"n"), 0o755))
	// A path of exactly 4,095 bytes.
	rest := 4095 - len(o.dir)
	var deep strings.Builder
	deep.WriteString(o.dir)
	for rest > 256 {
		deep.WriteString("/" + name)
		rest -= 256
	}
	deep.WriteString("/" + strings.Repeat("z", rest-1))
	fd, err = unix.Open(deep.String(), unix.O_CREAT|unix.O_RDWR, 0o644)
	o.say("%d: %v", deep.Len(), err)
	unix.Close(fd)
	o.say("%v", unix.Stat(deep.String(), &st))
	o.say("%v", unix.Unlink(deep.String()))
}

func truthNames(o *outcome) {
	for _, n := range []string{"a\xffb", " ", "-rf", "new\nline", "\x01\x7f", "...", "ünï", strings.Repeat("\xfe", 255), ".aimon"} {
		unix.Close(o.create(n, unix.O_RDWR, 0o644))
		o.stat(n)
	}
	d, err := os.ReadDir(o.dir)
	o.say("%v", err)
	for _, e := range d {
		o.say("%q", e.Name())
	}
}

func truthTimes(o *outcome) {
	o.file("f", 0o644, "x")
	set := func(a, m unix.Timespec) {
		o.say("%v", unix.UtimesNanoAt(unix.AT_FDCWD, o.path("f"), []unix.Timespec{a, m}, 0))
		var st unix.Stat_t
		o.must(unix.Stat(o.path("f"), &st))
		o.say("%d.%d %d.%d", st.Atim.Sec, st.Atim.Nsec, st.Mtim.Sec, st.Mtim.Nsec)
	}
	set(unix.Timespec{Sec: 1, Nsec: 123456789}, unix.Timespec{Sec: 1e9, Nsec: 999999999})
	set(unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Sec: 5})
	set(unix.Timespec{Sec: -5}, unix.Timespec{Sec: 1 << 33})
	set(unix.Timespec{Sec: 9}, unix.Timespec{Nsec: unix.UTIME_OMIT})
	fd, err := unix.Open(o.path("f"), unix.O_WRONLY, 0)
	o.say("%v", err)
	unix.Write(fd, []byte("yy"))
	tv := []unix.Timeval{{Sec: 3}, {Sec: 4}}
	o.say("%v", unix.Futimes(fd, tv))
	unix.Close(fd)
	var st unix.Stat_t
	o.must(unix.Stat(o.path("f"), &st))
	o.say("%d %d %d", st.Atim.Sec, st.Mtim.Sec, st.Size)
}

func truthNodes(o *outcome) {
	o.say("%v", unix.Mkfifo(o.path("fifo"), 0o644))
	o.stat("fifo")
	go func() {
		if f, err := os.OpenFile(o.path("fifo"), os.O_WRONLY, 0); err == nil {
			f.WriteString("through")
			f.Close()
		}
	}()
	b, err := os.ReadFile(o.path("fifo"))
	o.say("%s %v", b, err)
	o.say("%v", unix.Mknod(o.path("reg"), unix.S_IFREG|0o640, 0))
	o.stat("reg")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	o.must(err)
	o.must(os.Chdir(o.dir))
	o.say("%v", unix.Bind(fd, &unix.SockaddrUnix{Name: "sock"}))
	o.say("%v", unix.Listen(fd, 1))
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	o.must(err)
	o.say("%v", unix.Connect(c, &unix.SockaddrUnix{Name: "sock"}))
	o.must(os.Chdir("/"))
	unix.Close(fd)
	unix.Close(c)
	o.stat("sock")
}

func truthTrunc(o *outcome) {
	o.file("f", 0o644, "long text")
	fd, err := unix.Open(o.path("f"), unix.O_WRONLY|unix.O_TRUNC, 0)
	o.say("%v", err)
	o.stat("f")
	unix.Write(fd, []byte("ab"))
	o.stat("f")
	unix.Close(fd)
	o.stat("f")
	fd, err = unix.Open(o.path("f"), unix.O_RDONLY|unix.O_TRUNC, 0)
	o.say("%v", err)
	unix.Close(fd)
	o.stat("f")
	o.say("%v", unix.Truncate(o.path("f"), 1<<40))
	o.stat("f")
	o.say("%v", unix.Truncate(o.path("none"), 1))
	o.say("%v", unix.Truncate(o.dir, 1))
	// A file that only its creator's descriptor may write.
	fd = o.create("ro", unix.O_RDWR, 0o444)
	n, err := unix.Write(fd, []byte("xyz"))
	o.say("%d %v %v", n, err, unix.Ftruncate(fd, 1))
	unix.Close(fd)
	o.stat("ro")
}

func truthProtected(o *outcome) {
	o.file("f", 0o644, "x")
	_, err := unix.Open(o.path("f"), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o644)
	o.say("%v", err)
	_, err = unix.Open(o.path("f/x"), unix.O_RDONLY, 0)
	o.say("%v", err)
	_, err = unix.Open(o.dir, unix.O_RDWR, 0)
	o.say("%v", err)
}

func truthOpenErrors(o *outcome) {
	_, err := unix.Open(o.path("none"), unix.O_RDWR, 0)
	o.say("%v", err)
	_, err = unix.Open(o.path("none/x"), unix.O_CREAT|unix.O_RDWR, 0)
	o.say("%v", err)
	o.file("f", 0o644, "x")
	_, err = unix.Open(o.path("f"), unix.O_DIRECTORY, 0)
	o.say("%v", err)
	o.say("%v", unix.Rmdir(o.path("f")))
	o.say("%v", unix.Mkdir(o.path("f"), 0o755))
	o.say("%v", unix.Unlink(o.path("none")))
	o.say("%v", unix.Rmdir(o.path(".")))
}

func truthDirect(o *outcome) {
	o.file("f", 0o644, strings.Repeat("d", 8192))
	fd, err := unix.Open(o.path("f"), unix.O_RDWR|unix.O_DIRECT, 0)
	o.say("%v", err)
	if err != nil {
		return
	}
	m, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	o.must(err)
	n, err := unix.Pread(fd, m, 4096)
	o.say("%d %v %q", n, err, m[:3])
	m[0] = 'E'
	n, err = unix.Pwrite(fd, m, 0)
	o.say("%d %v", n, err)
	unix.Close(fd)
	b, err := os.ReadFile(o.path("f"))
	o.say("%q %v", b[:3], err)
}

func truthReadWrite(o *outcome) {
	fd := o.create("f", unix.O_RDWR, 0o644)
	data := make([]byte, 3<<20+123)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	n, err := unix.Pwrite(fd, data, 4567)
	o.say("%d %v", n, err)
	unix.Close(fd)
	b, err := os.ReadFile(o.path("f"))
	o.say("%v %v", len(b) == len(data)+4567 && bytes.Equal(b[4567:], data), err)
	n, err = unix.Pread(fd, data, 0)
	o.say("closed: %v", err)
	fd, err = unix.Open(o.path("f"), unix.O_RDONLY, 0)
	o.must(err)
	n, err = unix.Pread(fd, data, 1<<40)
	o.say("%d %v", n, err)
	_, err = unix.Write(fd, []byte("x"))
	o.say("%v", err)
	unix.Close(fd)
}

func truthBigDirectory(o *outcome) {
	const count = 3000
	for i := range count {
		unix.Close(o.create(fmt.Sprintf("n%05d", i), unix.O_RDWR, 0o644))
	}
	d, err := os.Open(o.dir)
	o.must(err)
	defer d.Close()
	seen := map[string]int{}
	for i := 0; ; i++ {
		names, err := d.Readdirnames(100)
		for _, n := range names {
			seen[n]++
		}
		if err != nil {
			break
		}
		o.must(unix.Unlink(o.path(fmt.Sprintf("n%05d", i*2))))
		o.file(fmt.Sprintf("new%05d", i), 0o644, "x")
	}
	missing, twice := 0, 0
	for i := range count {
		n := seen[fmt.Sprintf("n%05d", i)]
		if n == 0 && (i%2 == 1 || i > 2*count/100+10) {
			missing++
		}
		if n > 1 {
			twice++
		}
	}
	o.say("missing %d twice %d", missing, twice)
}

func truthExec(o *outcome) {
	o.file("script", 0o755, "#!/bin/sh\necho ran $1\n")
	o.run("./script", "well")
	b, err := os.ReadFile("/bin/true")
	o.must(err)
	o.file("true", 0o755, string(b))
	o.run("./true")
	o.as(nobody, nobody, nil, func() {
		cmd := exec.Command(o.path("true"))
		o.say("%v", cmd.Run())
	})
	o.say("%v", unix.Chmod(o.path("true"), 0o644))
	o.run("./true")
}

func truthStatOpen(o *outcome) {
	o.file("f", 0o644, "x")
	o.must(unix.Utimes(o.path("f"), []unix.Timeval{{Sec: 1}, {Sec: 1}}))
	o.stat("f")
	fd, err := unix.Open(o.path("f"), unix.O_RDWR, 0)
	o.must(err)
	m, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	o.must(err)
	o.stat("f")
	unix.Pwrite(fd, []byte("yyyy"), 0)
	o.stat("f")
	var st syscall.Stat_t
	o.must(syscall.Stat(o.path("f"), &st))
	o.say("touched %v", st.Mtim.Sec > 1)
	o.must(unix.Utimes(o.path("f"), []unix.Timeval{{Sec: 1}, {Sec: 1}}))
	m[0] = 'z'
	o.must(unix.Msync(m, unix.MS_SYNC))
	o.must(syscall.Stat(o.path("f"), &st))
	o.say("mapped %v", st.Mtim.Sec > 1)
	unix.Munmap(m)
	unix.Close(fd)
	o.must(syscall.Stat(filepath.Join(o.dir, "f"), &st))
	o.say("after %v", st.Mtim.Sec > 1)
}
