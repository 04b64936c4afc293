package artifact

import "aimon.at/vfsd/change"

// ShownNames returns the path and the file name as they stand in JSON, both escaped or none: see
// change.EscapePath.
func ShownNames(path string) (shown, fileName string, escaped bool) {
	shown, escaped = change.EscapePath(path)
	fileName = FileName(path)
	if escaped {
		fileName = change.Escape(fileName)
	}
	return shown, fileName, escaped
}
