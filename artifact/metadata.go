package artifact

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"aimon.at/vfsd/change"

	"aimon.at/vfsd/session"
)

// ArtifactMetadata is the contract that FileArtifact and MessageArtifact share: six fields, of
// which mimeType, toolUseId and downloadToken may be "" for absent. Path and FileName are bytes.
type ArtifactMetadata interface {
	Path() string
	FileName() string
	Size() int64 // bytes
	MimeType() string
	ToolUseID() string
	DownloadToken() string
}

var (
	_ ArtifactMetadata = FileArtifact{}
	_ ArtifactMetadata = MessageArtifact{}
)

// Fields are the six fields by name, for the constructors.
type Fields struct {
	Path          string
	FileName      string
	Size          int64
	MimeType      string
	ToolUseID     string
	DownloadToken string
}

// FileArtifact is a file that an execution produced. The zero value is no artifact: use
// NewFileArtifact or decode one.
type FileArtifact struct{ metadata }

// NewFileArtifact validates f: session.ErrInvalid where path or file name are blank (empty or
// only white space), the size is negative, or another text is not valid UTF-8.
func NewFileArtifact(f Fields) (FileArtifact, error) {
	m, err := newMetadata(f)
	return FileArtifact{m}, err
}

// Message returns the value for a message.
func (a FileArtifact) Message() MessageArtifact { return MessageArtifact(a) }

// UnmarshalJSON decodes and validates. Unknown fields are ignored.
func (a *FileArtifact) UnmarshalJSON(data []byte) (err error) {
	a.metadata, err = decodeMetadata(data)
	return err
}

// MessageArtifact is an artifact as a message refers to it, with the token of its link where one
// was issued. The zero value is no artifact: use NewMessageArtifact or decode one.
type MessageArtifact struct{ metadata }

// NewMessageArtifact validates f as NewFileArtifact does.
func NewMessageArtifact(f Fields) (MessageArtifact, error) {
	m, err := newMetadata(f)
	return MessageArtifact{m}, err
}

// WithDownloadToken returns a copy with that token, without one for "".
func (a MessageArtifact) WithDownloadToken(token string) (MessageArtifact, error) {
	f := a.f
	f.DownloadToken = token
	return NewMessageArtifact(f)
}

// UnmarshalJSON decodes and validates. Unknown fields are ignored.
func (a *MessageArtifact) UnmarshalJSON(data []byte) (err error) {
	a.metadata, err = decodeMetadata(data)
	return err
}

// FileArtifact returns the value of an entry.
func (e Entry) FileArtifact() (FileArtifact, error) {
	return NewFileArtifact(Fields{
		Path: e.Path(), FileName: FileName(e.Path()), Size: e.Stamp.Size,
		MimeType: e.MimeType, ToolUseID: e.Who.ToolUseID,
	})
}

// metadata holds validated fields that nobody can change.
type metadata struct{ f Fields }

func newMetadata(f Fields) (metadata, error) {
	if strings.TrimSpace(f.Path) == "" {
		return metadata{}, fmt.Errorf("%w artifact: its path is blank", session.ErrInvalid)
	}
	if strings.TrimSpace(f.FileName) == "" {
		return metadata{}, fmt.Errorf("%w artifact %.80q: its file name is blank", session.ErrInvalid, f.Path)
	}
	if f.Size < 0 {
		return metadata{}, fmt.Errorf("%w artifact %.80q: its size is %d", session.ErrInvalid, f.Path, f.Size)
	}
	for _, text := range []string{f.MimeType, f.ToolUseID, f.DownloadToken} {
		if !utf8.ValidString(text) {
			return metadata{}, fmt.Errorf("%w artifact %.80q: a field is not valid UTF-8", session.ErrInvalid, f.Path)
		}
	}
	return metadata{f}, nil
}

func (m metadata) Path() string          { return m.f.Path }
func (m metadata) FileName() string      { return m.f.FileName }
func (m metadata) Size() int64           { return m.f.Size }
func (m metadata) MimeType() string      { return m.f.MimeType }
func (m metadata) ToolUseID() string     { return m.f.ToolUseID }
func (m metadata) DownloadToken() string { return m.f.DownloadToken }

// wire is the JSON form.
type wire struct {
	Path          string `json:"path"`
	FileName      string `json:"fileName"`
	PathEscaped   bool   `json:"pathEscaped,omitempty"`
	Size          int64  `json:"size"`
	MimeType      string `json:"mimeType,omitempty"`
	ToolUseID     string `json:"toolUseId,omitempty"`
	DownloadToken string `json:"downloadToken,omitempty"`
}

// MarshalJSON leaves out absent fields and keeps the token.
func (m metadata) MarshalJSON() ([]byte, error) {
	w := wire{Path: m.f.Path, FileName: m.f.FileName, Size: m.f.Size,
		MimeType: m.f.MimeType, ToolUseID: m.f.ToolUseID, DownloadToken: m.f.DownloadToken}
	if !utf8.ValidString(w.Path) || !utf8.ValidString(w.FileName) {
		w.Path, w.FileName, w.PathEscaped = change.Escape(w.Path), change.Escape(w.FileName), true
	}
	return json.Marshal(w)
}

func decodeMetadata(data []byte) (metadata, error) {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return metadata{}, fmt.Errorf("%w artifact document: %w", session.ErrInvalid, err)
	}
	if w.PathEscaped {
		var err error
		if w.Path, err = change.UnescapePath(w.Path, true); err != nil {
			return metadata{}, err
		}
		if w.FileName, err = change.UnescapePath(w.FileName, true); err != nil {
			return metadata{}, err
		}
	}
	return newMetadata(Fields{Path: w.Path, FileName: w.FileName, Size: w.Size,
		MimeType: w.MimeType, ToolUseID: w.ToolUseID, DownloadToken: w.DownloadToken})
}
