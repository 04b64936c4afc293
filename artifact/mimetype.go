package artifact

import (
	"io"
	"mime"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// sniffLen is what is read of a file to tell its type: the library looks at no more.
const sniffLen = 3072

const (
	octets    = "application/octet-stream"
	plainText = "text/plain"
)

// sniff tells the type of content of that size by its first bytes and, where they say no more than "bytes" or
// "text", by the file name. "" where nothing is known.
func sniff(r io.ReaderAt, size int64, name string) (kind string) {
	// The content is hostile and the detectors are many: a crash in one must not take the
	// collector with it.
	defer func() {
		if recover() != nil {
			kind = typeByName(name)
		}
	}()
	buf := make([]byte, min(size, sniffLen)) // no longer than the file, so that one read is enough
	n, err := r.ReadAt(buf, 0)
	if n == 0 || err != nil && err != io.EOF {
		return typeByName(name)
	}
	kind = mimetype.Detect(buf[:n]).String()
	byName := typeByName(name)
	switch {
	case kind == octets && byName != "":
		return byName
	case strings.HasPrefix(kind, plainText) && strings.HasPrefix(byName, "text/"):
		return byName
	}
	return kind
}

func typeByName(name string) string { return mime.TypeByExtension(strings.ToLower(path.Ext(name))) }
