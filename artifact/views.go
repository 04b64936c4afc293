package artifact

import (
	"errors"
	"fmt"
	"io"
	"time"

	"aimon.at/vfsd/change"
)

// ErrGone says that the bytes of a final artifact cannot be had any more.
var ErrGone = errors.New("gone")

// ErrRemoved is the ErrGone of a link whose artifact is none any more: it was removed, or withdrawn by
// its file's attribute.
var ErrRemoved = fmt.Errorf("%w: removed", ErrGone)

// State says what became of a final entry's file.
type State string

const (
	Live     State = "live"     // its path still has the bytes it was final with
	Replaced State = "replaced" // its path has other bytes
	Deleted  State = "deleted"  // its path has no file
	Lost     State = "lost"     // it could not be looked at; LostReason says why
)

// View is an entry as shown: with its state, and for an open one with what stands now.
type View struct {
	Entry
	State State
}

// ListQuery selects what List returns.
type ListQuery struct {
	SessionID   string
	ExecutionID string // "" for all
	NoForks     bool   // leave out the forks of ExecutionID
	ToolUseID   string // "" for all
	From        uint64 // a mark: only what became final after it
	Writes      bool   // plain writes too
	All         bool   // replaced, deleted, lost and removed ones too
	Limit       int    // 0 for all
}

// Listing is an answer to a ListQuery.
type Listing struct {
	Views    []View
	NextFrom uint64 // continues the list; 0 where it is complete
}

// Content is the bytes of an artifact at one moment. ReadSeeker semantics over Size bytes.
type Content interface {
	io.ReadSeeker
	io.Closer

	View() View
	Size() int64
	ModTime() time.Time
	Stamp() change.Stamp

	// Verify reports ErrGone where the file is not what it was when opened: to be asked before the
	// first and after the last byte is served.
	Verify() error
}
