package artifact

import "strings"

const separators = `/\`

// FileName returns the last element of a path in which / and \ are separators alike, trailing ones
// dropped. An empty path is returned unchanged. A path of nothing but separators names no file:
// the answer is "", which no constructor accepts.
func FileName(path string) string {
	path = strings.TrimRight(path, separators)
	return path[strings.LastIndexAny(path, separators)+1:]
}
