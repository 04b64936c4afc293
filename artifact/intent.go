package artifact

import (
	"bytes"
	"path"
	"strings"
)

// Decision says whether a written file is an artifact, and which rule said so.
type Decision struct {
	Artifact bool
	Reason   string
}

// The reasons of a Decision. They are shown to people and programs and never change.
const (
	ReasonAttribute  = "attribute"             // 1: the file's own user.aimon.artifact
	ReasonToolUse    = "tool-use"              // 2 and 4: what its tool use was begun with or declared
	ReasonDirectory  = "directory"             // 2 and 4: user.aimon.artifact of the nearest directory above that has it
	ReasonIgnored    = "artifactignore"        // 3: a pattern in .artifactignore
	ReasonIgnoreFile = "artifactignore-itself" // .artifactignore is never an artifact
	ReasonVCS        = "built-in-vcs"          // 3: inside a version control system's folder
	ReasonDependency = "built-in-dependencies" // 3: inside a folder of installed dependencies
	ReasonCache      = "built-in-cache"        // 3: inside a tool's cache, or a compiled cache file
	ReasonTemporary  = "built-in-temporary"    // 3: an editor's or program's swap, lock, backup or temporary file
	ReasonScript     = "script"                // 5: .py .js .sh .rb .ts, undeclared
	ReasonDefault    = "default"               // 5: the default of the execution
	ReasonAdded      = "added"                 // by hand (artifacts add)
)

// maxIntentLen bounds what is looked at of an attribute's value; the longest that has a meaning
// is five bytes.
const maxIntentLen = 64

// ParseIntent reads a raw value of user.aimon.artifact: true, 1, yes, on or false, 0, no, off in
// any case, with white space and NULs around it. ok is false for everything else, which counts
// as unset.
func ParseIntent(raw []byte) (value, ok bool) {
	if len(raw) > maxIntentLen {
		return false, false
	}
	switch strings.ToLower(string(bytes.Trim(raw, "\x00 \t\r\n\v\f"))) {
	case "true", "1", "yes", "on":
		return true, true
	case "false", "0", "no", "off":
		return false, true
	}
	return false, false
}

// evidence is what a decision rests on. Nil means undeclared.
type evidence struct {
	path      string
	own       *bool                  // the file's own attribute
	toolUse   *bool                  // what the tool use declares
	directory *bool                  // the nearest directory's attribute
	ignored   func(path string) bool // by .artifactignore
	standard  bool                   // the execution's default
}

// decide carries out the five steps of the design in their order.
func decide(e evidence) Decision {
	switch {
	case e.path == ignoreFilePath:
		return Decision{false, ReasonIgnoreFile}
	case e.own != nil:
		return Decision{*e.own, ReasonAttribute}
	case is(e.toolUse, false):
		return Decision{false, ReasonToolUse}
	case is(e.directory, false):
		return Decision{false, ReasonDirectory}
	case e.ignored(e.path):
		return Decision{false, ReasonIgnored}
	}
	if reason := builtIn(e.path); reason != "" {
		return Decision{false, reason}
	}
	switch {
	case is(e.toolUse, true):
		return Decision{true, ReasonToolUse}
	case is(e.directory, true):
		return Decision{true, ReasonDirectory}
	case isScript(e.path):
		return Decision{false, ReasonScript}
	}
	return Decision{e.standard, ReasonDefault}
}

func is(declared *bool, value bool) bool { return declared != nil && *declared == value }

// isScript reports whether the file is more often a means to make an artifact than one.
func isScript(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".py", ".js", ".sh", ".rb", ".ts":
		return true
	}
	return false
}
