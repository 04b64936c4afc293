package proc

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// ErrMalformed says that a file of /proc did not have the form that the kernel gives it.
var ErrMalformed = errors.New("malformed")

// Ticks is how many clock ticks (USER_HZ) the kernel counts a second in what it shows to programs:
// 100 on every architecture that Go runs on under Linux.
const Ticks = 100

// Stat is the part of /proc/PID/stat (proc_pid_stat(5)) that ancestry rests on.
type Stat struct {
	PID        int
	State      byte
	PPID       int    // the process id of the parent, never a thread's
	ExitSignal int    // -1 for a thread that is not its process's first
	Start      uint64 // clock ticks since boot
	EnvEnd     uint64 // address; 0 for none, in the middle of an exec, and where the reader may not know
}

// Places of fields after the closing parenthesis of comm, the state being the first.
const (
	fieldState      = 3 - 3
	fieldPPID       = 4 - 3
	fieldStart      = 22 - 3
	fieldExitSignal = 38 - 3
	fieldEnvEnd     = 51 - 3
)

// ParseStat reads the content of /proc/PID/stat. The command name in it is chosen by the process
// and may hold parentheses, blanks and newlines: what counts begins after the last parenthesis.
func ParseStat(b []byte) (Stat, error) {
	open, closed := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || closed < open {
		return Stat{}, ErrMalformed
	}
	var s Stat
	pid, ok := number(bytes.TrimSpace(b[:open]))
	s.PID = int(pid)
	n := 0
	for rest := b[closed+1:]; ok; n++ {
		var f []byte
		if f, rest = field(rest); len(f) == 0 {
			break
		}
		ok = s.take(n, f)
	}
	if !ok || n <= fieldExitSignal || s.PID <= 0 || s.PPID < 0 {
		return Stat{}, ErrMalformed
	}
	return s, nil
}

// take notes the field of that place, and reports whether it has its form.
func (s *Stat) take(place int, f []byte) (ok bool) {
	var n int64
	switch place {
	case fieldState:
		s.State, ok = f[0], len(f) == 1
	case fieldPPID:
		n, ok = number(f)
		s.PPID = int(n)
	case fieldExitSignal:
		n, ok = number(f)
		s.ExitSignal = int(n)
	case fieldStart:
		s.Start, ok = unsigned(f)
	case fieldEnvEnd:
		s.EnvEnd, _ = unsigned(f)
		ok = true
	default:
		ok = true
	}
	return ok
}

// field cuts the first field off: what stands between blanks.
func field(b []byte) (f, rest []byte) {
	b = bytes.TrimLeft(b, " \n")
	if i := bytes.IndexAny(b, " \n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

func number(f []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(f, []byte("-"))
	n, ok := unsigned(digits)
	if !ok || n > math.MaxInt32 {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

func unsigned(f []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(f), 10, 64)
	return n, err == nil
}

// ParseStatus finds the process id of a thread and, outermost first, the ids that it has in the pid
// namespaces from the reader's /proc down to its own, in /proc/TID/status.
func ParseStatus(b []byte) (tgid int, nspid []int, err error) {
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		switch string(key) {
		case "Tgid":
			tgid, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		case "NStgid":
			nspid, err = parseInts(value)
		}
		if err != nil {
			return 0, nil, ErrMalformed
		}
	}
	if tgid <= 0 || len(nspid) == 0 {
		return 0, nil, ErrMalformed
	}
	return tgid, nspid, nil
}

func parseInts(b []byte) ([]int, error) {
	var list []int
	for _, f := range bytes.Fields(b) {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// ParseCgroup finds the path in the cgroup v2 hierarchy in the content of /proc/PID/cgroup: the line
// of hierarchy 0 with no controllers. ok is false where there is none.
func ParseCgroup(b []byte) (path string, ok bool) {
	p, ok := CutCgroup(b)
	return string(p), ok
}

// CutCgroup is ParseCgroup as a part of b.
func CutCgroup(b []byte) (path []byte, ok bool) {
	mark := []byte("0::/")
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		if bytes.HasPrefix(line, mark) {
			return line[len(mark)-1:], true
		}
		b = rest
	}
	return nil, false
}
