package artifact

import (
	"errors"
	"io/fs"

	"aimon.at/vfsd/change"
)

// ignoreTree has nothing but an .artifactignore and counts how often it is read.
type ignoreTree struct {
	Tree
	text  *string
	stamp change.Stamp
	reads int
}

func (t *ignoreTree) set(text string) {
	t.text = &text
	t.stamp = change.Stamp{Size: int64(len(text)), Ctime: t.stamp.Ctime + 1}
}

func (t *ignoreTree) Stat(string) (change.FileID, change.Stamp, error) {
	if t.text == nil {
		return change.FileID{}, change.Stamp{}, fs.ErrNotExist
	}
	return change.FileID{Ino: 1}, t.stamp, nil
}

func (t *ignoreTree) ReadRoot(_ string, limit int64) ([]byte, error) {
	t.reads++
	if int64(len(*t.text)) > limit {
		return nil, errors.New("too large")
	}
	return []byte(*t.text), nil
}

func ignores(rules []ignoreRule, path string) bool {
	g := ignored{rules, map[string]bool{}}
	yes, _ := g.excludes(path)
	return yes
}
