package proc

import (
	"bytes"
	"errors"
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
	fields := bytes.Fields(b[closed+1:])
	if len(fields) <= fieldExitSignal || len(fields[fieldState]) != 1 {
		return Stat{}, ErrMalformed
	}
	s := Stat{State: fields[fieldState][0]}
	var errs [4]error
	s.PID, errs[0] = strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	s.PPID, errs[1] = strconv.Atoi(string(fields[fieldPPID]))
	s.Start, errs[2] = strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	s.ExitSignal, errs[3] = strconv.Atoi(string(fields[fieldExitSignal]))
	if len(fields) > fieldEnvEnd {
		s.EnvEnd, _ = strconv.ParseUint(string(fields[fieldEnvEnd]), 10, 64)
	}
	if errors.Join(errs[:]...) != nil || s.PID <= 0 || s.PPID < 0 {
		return Stat{}, ErrMalformed
	}
	return s, nil
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
	for line := range bytes.Lines(b) {
		if rest, found := bytes.CutPrefix(line, []byte("0::/")); found {
			return "/" + string(bytes.TrimSuffix(rest, []byte("\n"))), true
		}
	}
	return "", false
}
