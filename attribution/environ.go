package attribution

import (
	"bytes"
	"strings"

	"aimon.at/vfsd/session"
)

// The variables that are read.
const (
	envToolUse   = "VFSD_TOOL_USE_ID"
	envExecution = "VFSD_EXECUTION_ID"
	envArtifact  = "VFSD_ARTIFACT"
)

// words is what one environment says.
type words struct {
	toolUse   string
	said      bool // it has VFSD_TOOL_USE_ID, valid or not
	invalid   bool // and that is not a valid id
	execution string
	artifact  *bool
}

// parseEnviron reads an environment block: NAME=value strings that end in a zero byte. Of several of
// one name the first counts, as for getenv(3). A last string without its zero byte was cut and is
// left out where cut says so.
func parseEnviron(env []byte, cut bool) words {
	var w words
	var seen [3]bool
	for len(env) > 0 {
		item, rest, whole := bytes.Cut(env, []byte{0})
		env = rest
		if !whole && cut {
			break
		}
		if !bytes.HasPrefix(item, []byte("VFSD_")) {
			continue
		}
		name, value, ok := strings.Cut(string(item), "=")
		if ok {
			w.take(name, value, &seen)
		}
	}
	return w
}

func (w *words) take(name, value string, seen *[3]bool) {
	switch {
	case name == envToolUse && !seen[0]:
		seen[0] = true
		w.toolUse, w.said, w.invalid = value, true, session.CheckToolUseID(value) != nil
	case name == envExecution && !seen[1]:
		seen[1] = true
		if session.CheckID("execution", value) == nil {
			w.execution = value
		}
	case name == envArtifact && !seen[2]:
		seen[2] = true
		w.artifact = parseIntent(value)
	}
}

// parseIntent understands true and false, yes and no, on and off, 1 and 0 in any case; nil for
// anything else.
func parseIntent(s string) *bool {
	yes, no := true, false
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return &yes
	case "0", "false", "no", "off":
		return &no
	}
	return nil
}
