package fusefs

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// How long the operations of one mode go on. A failure prints its seed.
const fsxTime = 4 * time.Second

const (
	fsxMost   = 300 << 10 // bytes of a file: more than one request of plain mode
	fsxNames  = 6
	fsxOpened = 12
)

// fsx runs random operations on a few files through many descriptors and holds every answer against
// a model in memory.
type fsx struct {
	t     *testing.T
	rnd   *rand.Rand
	m     *mounted
	files map[string]*fsxFile
	open  []*fsxOpen
	log   []string
}

type fsxFile struct{ data []byte }

type fsxOpen struct {
	file   *fsxFile
	fd     int
	flags  int
	mapped []byte // a shared mapping of the first bytes, nil for none
}

func (o *fsxOpen) reads() bool  { return o.flags&unix.O_ACCMODE != unix.O_WRONLY }
func (o *fsxOpen) writes() bool { return o.flags&unix.O_ACCMODE != unix.O_RDONLY }

func TestRandomOperationsAgreeWithAModel(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			s := spec{Source: filepath.Join(scratch(t), "source"), Track: true}
			require.NoError(t, os.Mkdir(s.Source, 0o755))
			s.Config = Config{NoPassthrough: mode.plain, CacheTimeout: time.Second}
			x := &fsx{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), files: map[string]*fsxFile{}}
			defer func() {
				if t.Failed() {
					t.Logf("seed %d; the last of %d operations:\n%s", seed, len(x.log), x.tail())
				}
			}()
			for end := time.Now().Add(fsxTime); time.Now().Before(end); {
				x.m = serve(t, s)
				for range 400 {
					x.step()
				}
				x.finish()
			}
			t.Logf("%d operations", len(x.log))
		})
	}
}

func (x *fsx) tail() string {
	var b bytes.Buffer
	for _, l := range x.log[max(0, len(x.log)-60):] {
		b.WriteString(l + "\n")
	}
	return b.String()
}

func (x *fsx) note(format string, args ...any) { x.log = append(x.log, fmt.Sprintf(format, args...)) }

func (x *fsx) ok(err error) {
	x.t.Helper()
	require.NoError(x.t, err)
}

func (x *fsx) name() string { return string(rune('a' + x.rnd.IntN(fsxNames))) }

func (x *fsx) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(x.rnd.Uint32()) | 1 // never 0, as holes are
	}
	return b
}

// span is a random part of a file that may lie beyond its end.
func (x *fsx) span(size int) (off, n int) {
	off = x.rnd.IntN(min(size+5000, fsxMost))
	if x.rnd.IntN(3) == 0 {
		off &^= 4095
	}
	n = 1 + x.rnd.IntN(min(fsxMost-off, []int{10, 5000, 150 << 10}[x.rnd.IntN(3)]))
	return off, n
}

func (f *fsxFile) put(off int, b []byte) {
	f.grow(off + len(b))
	copy(f.data[off:], b)
}

func (f *fsxFile) grow(size int) {
	if size > len(f.data) {
		f.data = append(f.data, make([]byte, size-len(f.data))...)
	}
}

func (f *fsxFile) truncate(size int) {
	if size <= len(f.data) {
		f.data = slices.Clone(f.data[:size])
	}
	f.grow(size)
}

func (x *fsx) step() {
	steps := []func(){x.openOne, x.openOne, x.closeOne, x.rename, x.link, x.unlink, x.truncatePath, x.checkAll}
	if len(x.open) > 0 {
		o := x.open[x.rnd.IntN(len(x.open))]
		steps = append(steps, func() { x.read(o) }, func() { x.read(o) }, func() { x.stat(o) })
		if o.writes() {
			steps = append(steps, func() { x.write(o) }, func() { x.write(o) }, func() { x.truncate(o) },
				func() { x.fallocate(o) }, func() { x.copyRange(o) }, func() { x.sync(o) })
		}
		if o.flags&unix.O_ACCMODE == unix.O_RDWR {
			steps = append(steps, func() { x.mapped(o) }, func() { x.mapped(o) })
		}
	}
	steps[x.rnd.IntN(len(steps))]()
}

func (x *fsx) openOne() {
	if len(x.open) >= fsxOpened {
		x.closeOne()
	}
	name := x.name()
	flags := []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_RDWR}[x.rnd.IntN(4)]
	for _, extra := range []int{unix.O_CREAT, unix.O_APPEND, unix.O_TRUNC, unix.O_EXCL} {
		if x.rnd.IntN(3) == 0 {
			flags |= extra
		}
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		flags &^= unix.O_TRUNC
	}
	if flags&unix.O_CREAT == 0 {
		flags &^= unix.O_EXCL
	}
	x.note("open %s %#o", name, flags)
	fd, err := unix.Open(x.m.path(name), flags|unix.O_CLOEXEC, 0o644)
	f := x.files[name]
	switch {
	case f == nil && flags&unix.O_CREAT == 0:
		require.Equal(x.t, unix.ENOENT, err)
		return
	case f != nil && flags&unix.O_EXCL != 0:
		require.Equal(x.t, unix.EEXIST, err)
		return
	}
	x.ok(err)
	if f == nil {
		f = &fsxFile{}
		x.files[name] = f
	}
	if flags&unix.O_TRUNC != 0 {
		f.truncate(0)
	}
	x.open = append(x.open, &fsxOpen{file: f, fd: fd, flags: flags})
}

func (x *fsx) closeOne() {
	if len(x.open) == 0 {
		return
	}
	i := x.rnd.IntN(len(x.open))
	x.note("close %d", x.open[i].fd)
	x.shut(x.open[i])
	x.open = slices.Delete(x.open, i, i+1)
}

func (x *fsx) shut(o *fsxOpen) {
	x.ok(unix.Close(o.fd))
	if o.mapped != nil {
		x.ok(unix.Munmap(o.mapped))
	}
}

func (x *fsx) read(o *fsxOpen) {
	if !o.reads() {
		return
	}
	off, n := x.span(len(o.file.data))
	x.note("read %d %d+%d", o.fd, off, n)
	b := make([]byte, n)
	got, err := unix.Pread(o.fd, b, int64(off))
	x.ok(err)
	x.same(o.file.data[min(off, len(o.file.data)):min(off+n, len(o.file.data))], b[:got])
}

// same says where two contents differ first, and not all of both.
func (x *fsx) same(want, got []byte) {
	x.t.Helper()
	require.Equal(x.t, len(want), len(got), "length")
	for i := range want {
		if want[i] != got[i] {
			require.Failf(x.t, "content", "byte %d of %d: want %d, got %d", i, len(want), want[i], got[i])
		}
	}
}

func (x *fsx) write(o *fsxOpen) {
	off, n := x.span(len(o.file.data))
	if o.flags&unix.O_APPEND != 0 {
		off = len(o.file.data)
		n = min(n, fsxMost-off)
	}
	b := x.bytes(max(n, 0))
	x.note("write %d %d+%d", o.fd, off, n)
	put, err := unix.Pwrite(o.fd, b, int64(off))
	x.ok(err)
	require.Equal(x.t, len(b), put)
	if put > 0 {
		o.file.put(off, b)
	}
}

func (x *fsx) stat(o *fsxOpen) {
	x.note("fstat %d", o.fd)
	var st unix.Stat_t
	x.ok(unix.Fstat(o.fd, &st))
	require.EqualValues(x.t, len(o.file.data), st.Size)
}

func (x *fsx) truncate(o *fsxOpen) {
	size, _ := x.span(len(o.file.data))
	x.note("ftruncate %d %d", o.fd, size)
	x.ok(unix.Ftruncate(o.fd, int64(size)))
	o.file.truncate(size)
}

func (x *fsx) truncatePath() {
	name := x.name()
	f := x.files[name]
	if f == nil {
		return
	}
	size, _ := x.span(len(f.data))
	x.note("truncate %s %d", name, size)
	x.ok(unix.Truncate(x.m.path(name), int64(size)))
	f.truncate(size)
}

func (x *fsx) fallocate(o *fsxOpen) {
	off, n := x.span(len(o.file.data))
	keep, punch := x.rnd.IntN(2) == 0, x.rnd.IntN(2) == 0
	mode := uint32(0)
	if punch {
		mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	} else if keep {
		mode = unix.FALLOC_FL_KEEP_SIZE
	}
	x.note("fallocate %d %#x %d+%d", o.fd, mode, off, n)
	x.ok(unix.Fallocate(o.fd, mode, int64(off), int64(n)))
	switch {
	case punch:
		clear(o.file.data[min(off, len(o.file.data)):min(off+n, len(o.file.data))])
	case !keep:
		o.file.grow(off + n)
	}
}

func (x *fsx) copyRange(to *fsxOpen) {
	from := x.open[x.rnd.IntN(len(x.open))]
	if !from.reads() || from.file == to.file || to.flags&unix.O_APPEND != 0 {
		return
	}
	in, n := x.span(len(from.file.data))
	out, _ := x.span(len(to.file.data))
	n = min(n, fsxMost-out)
	offIn, offOut := int64(in), int64(out)
	x.note("copy_file_range %d %d -> %d %d+%d", from.fd, in, to.fd, out, n)
	got, err := unix.CopyFileRange(from.fd, &offIn, to.fd, &offOut, n, 0)
	x.ok(err)
	have := from.file.data[min(in, len(from.file.data)):min(in+n, len(from.file.data))]
	require.LessOrEqual(x.t, got, len(have))
	if len(have) > 0 {
		require.Positive(x.t, got)
		to.file.put(out, have[:got])
	}
}

func (x *fsx) sync(o *fsxOpen) {
	x.note("fsync %d", o.fd)
	x.ok(unix.Fsync(o.fd))
}

// mapped reads and stores through a shared mapping, within the file as it is: a page beyond its end is
// SIGBUS.
func (x *fsx) mapped(o *fsxOpen) {
	size := len(o.file.data)
	if size == 0 {
		return
	}
	if o.mapped == nil {
		m, err := unix.Mmap(o.fd, 0, fsxMost, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		x.ok(err)
		o.mapped = m
	}
	off := x.rnd.IntN(size)
	n := 1 + x.rnd.IntN(min(size-off, 9000))
	x.note("mmap %d %d+%d", o.fd, off, n)
	x.same(o.file.data[off:off+n], bytes.Clone(o.mapped[off:off+n]))
	b := x.bytes(n)
	copy(o.mapped[off:], b)
	o.file.put(off, b)
	if x.rnd.IntN(2) == 0 {
		x.ok(unix.Msync(o.mapped, unix.MS_SYNC))
	}
}

func (x *fsx) rename() {
	from, to := x.name(), x.name()
	flags := []uint{0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}[x.rnd.IntN(3)]
	x.note("rename %s %s %d", from, to, flags)
	err := unix.Renameat2(unix.AT_FDCWD, x.m.path(from), unix.AT_FDCWD, x.m.path(to), flags)
	f, g := x.files[from], x.files[to]
	switch {
	case f == nil, g == nil && flags == unix.RENAME_EXCHANGE:
		require.Equal(x.t, unix.ENOENT, err)
	case g != nil && flags == unix.RENAME_NOREPLACE:
		require.Equal(x.t, unix.EEXIST, err)
	case flags == unix.RENAME_EXCHANGE:
		x.ok(err)
		x.files[from], x.files[to] = g, f
	default:
		x.ok(err)
		if f != g { // else they are links of one file, which rename(2) leaves alone
			delete(x.files, from)
			x.files[to] = f
		}
	}
}

func (x *fsx) link() {
	from, to := x.name(), x.name()
	x.note("link %s %s", from, to)
	err := unix.Link(x.m.path(from), x.m.path(to))
	switch {
	case x.files[from] == nil:
		require.Equal(x.t, unix.ENOENT, err)
	case x.files[to] != nil:
		require.Equal(x.t, unix.EEXIST, err)
	default:
		x.ok(err)
		x.files[to] = x.files[from]
	}
}

func (x *fsx) unlink() {
	name := x.name()
	x.note("unlink %s", name)
	err := unix.Unlink(x.m.path(name))
	if x.files[name] == nil {
		require.Equal(x.t, unix.ENOENT, err)
		return
	}
	x.ok(err)
	delete(x.files, name)
}

// checkAll holds names, link counts and contents against the model, through the mount.
func (x *fsx) checkAll() { x.check(x.m.dir) }

func (x *fsx) check(dir string) {
	x.note("check")
	entries, err := os.ReadDir(dir)
	x.ok(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(x.t, slices.Sorted(maps.Keys(x.files)), names)
	links := map[*fsxFile]int{}
	for _, f := range x.files {
		links[f]++
	}
	for name, f := range x.files {
		info, err := os.Lstat(filepath.Join(dir, name))
		x.ok(err)
		require.EqualValues(x.t, links[f], info.Sys().(*syscall.Stat_t).Nlink, name)
		b, err := os.ReadFile(filepath.Join(dir, name))
		x.ok(err)
		x.same(f.data, b)
	}
}

// finish closes everything, ends the mount and looks at what it left on the disk.
func (x *fsx) finish() {
	for _, o := range x.open {
		x.shut(o)
	}
	x.open = nil
	x.check(x.m.dir)
	x.m.stop()
	x.check(x.m.source)
}
