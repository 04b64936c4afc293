package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"path"
	"strings"
	"unicode"

	"aimon.at/vfsd/artifact"
)

// inline are the types that a browser may show in place: pictures that can hold no script.
var inline = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/avif": true,
}

// contentType returns the entry's type as a header can have it. What is no type is bytes.
func contentType(v artifact.View) string {
	t, params, err := mime.ParseMediaType(v.MimeType)
	if err != nil || !strings.Contains(t, "/") {
		return "application/octet-stream"
	}
	if strings.HasPrefix(t, "text/") && params["charset"] == "" {
		params["charset"] = "utf-8"
	}
	if s := mime.FormatMediaType(t, params); s != "" {
		return s
	}
	return "application/octet-stream"
}

// disposition returns the Content-Disposition (RFC 6266): the name once in ASCII for old clients and
// once in UTF-8 (RFC 8187).
func disposition(v artifact.View, contentType string) string {
	kind := "attachment"
	if t, _, err := mime.ParseMediaType(contentType); err == nil && inline[t] {
		kind = "inline"
	}
	name := showable(path.Base(v.Path()))
	return fmt.Sprintf(`%s; filename="%s"; filename*=UTF-8''%s`, kind, asciiName(name), extValue(name))
}

// showable replaces what a file name can mislead its reader by: control and formatting characters
// (an override of the writing direction makes "gnp.exe" of "exe.png"), separators, invalid bytes.
func showable(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == '/' || r == '\\' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if strings.Trim(name, ".") == "" {
		return "file"
	}
	return name
}

// asciiName is the fallback: % is left out too because some clients decode it in a quoted string.
func asciiName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '%' {
			return '_'
		}
		return r
	}, name)
}

// extValue is the value-chars of RFC 8187, section 3.2.1: attr-char stays, all else is %XX.
func extValue(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; attrChar(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func attrChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0
}

// etag names the bytes by what the record knows them by. It tells nothing else: inode numbers and
// times stay inside.
func etag(c artifact.Content) string {
	v, st := c.View(), c.Stamp()
	h := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %d %d %d", v.ID, v.File.Dev, v.File.Ino, v.File.Birth, st.Size, st.Mtime, st.Ctime))
	return `"` + hex.EncodeToString(h[:16]) + `"`
}
