package artifact

import (
	"time"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/session"
)

// Entry is the record of one tool use's writes to one file: the unit of the collector, shown as a
// write and, where Artifact says so, as an artifact.
//
// It is open while its tool use is: a rewrite updates it, a rename moves it, an unlink of its last
// known name removes it. When it becomes final it gets a sequence number and its content fields
// never change again.
type Entry struct {
	ID        string              `json:"id"` // ULID
	SessionID string              `json:"sessionId"`
	Who       session.Attribution `json:"who"`
	File      change.FileID       `json:"file"`
	Names     []string            `json:"names"` // known paths; the last is the one shown
	Stamp     change.Stamp        `json:"stamp"` // size and times as last seen, at finality as served
	MimeType  string              `json:"mimeType,omitempty"`

	Final     bool   `json:"final,omitempty"`
	Seq       uint64 `json:"seq,omitempty"`       // order of finality in the session, from 1; 0 while open
	Version   int    `json:"version,omitempty"`   // of the path among final artifacts, from 1
	OpenAtEnd bool   `json:"openAtEnd,omitempty"` // somebody could still write when it became final

	Artifact bool   `json:"artifact,omitempty"` // as decided; of an open entry, as last evaluated
	Reason   string `json:"reason,omitempty"`   // the rule that decided
	Removed  bool   `json:"removed,omitempty"`  // taken out of the artifacts by hand

	DerivedFrom string    `json:"derivedFrom,omitempty"` // id of the final entry this file was moved from
	LostReason  string    `json:"lostReason,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	FinalAt     time.Time `json:"finalAt,omitzero"`
}

// Path is the name that is shown, "" where the file has none.
func (e Entry) Path() string {
	if len(e.Names) == 0 {
		return ""
	}
	return e.Names[len(e.Names)-1]
}
