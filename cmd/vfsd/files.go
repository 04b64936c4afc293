package main

import (
	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/backends/worktree"
	"aimon.at/vfsd/change"
)

// files is a working tree as the collector sees it.
type files struct{ *worktree.Direct }

var _ artifact.Tree = files{}

// Open opens the regular file at path.
func (f files) Open(path string) (artifact.File, error) { return f.OpenFile(path) }

// Stat looks at the regular file at path.
func (f files) Stat(path string) (change.FileID, change.Stamp, error) { return f.StatPath(path) }
