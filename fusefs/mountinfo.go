package fusefs

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// mountEntry is a line of /proc/self/mountinfo.
type mountEntry struct {
	id     int
	device string // major:minor
	point  string
	kind   string
}

// mountedAt returns what is mounted on top at path, false where nothing is.
func mountedAt(path string) (mountEntry, bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mountEntry{}, false, err
	}
	defer f.Close()
	return topMount(f, path)
}

// topMount finds the last mount at path: later lines cover earlier ones.
func topMount(r io.Reader, path string) (top mountEntry, found bool, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if e, ok := parseMount(lines.Text()); ok && e.point == path {
			top, found = e, true
		}
	}
	return top, found, lines.Err()
}

// parseMount reads one line: id, parent, major:minor, root, mountpoint, options, optional fields up
// to "-", type, source, options of the superblock.
func parseMount(line string) (mountEntry, bool) {
	head, tail, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(head), strings.Fields(tail)
	if !ok || len(fields) < 6 || len(kind) < 1 {
		return mountEntry{}, false
	}
	id, err := strconv.Atoi(fields[0])
	if err != nil {
		return mountEntry{}, false
	}
	return mountEntry{id: id, device: fields[2], point: unescape(fields[4]), kind: kind[0]}, true
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
