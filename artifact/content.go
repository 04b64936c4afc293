package artifact

import (
	"context"
	"fmt"
	"io"
	"time"

	"aimon.at/vfsd/change"
)

// Open returns the bytes of a final artifact, or of an open one as they stand. ErrGone where they
// are replaced, deleted or lost. The caller closes it.
func (l *Library) Open(ctx context.Context, id string) (Content, error) {
	e, err := l.settled(ctx, id)
	if err != nil {
		return nil, err
	}
	s := l.shelf(e.SessionID)
	c, err := l.openLive(s, l.view(s, e))
	if err != nil {
		s.close()
		return nil, err
	}
	return c, nil
}

// settled returns an entry with everything that happened so far in the index: changed attributes that
// wait for it would make a final entry look replaced, or still an artifact. Where the index cannot be
// written the bytes are still there to be served.
func (l *Library) settled(ctx context.Context, id string) (Entry, error) {
	e, err := l.entry(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	r := l.recorder(e.SessionID)
	if r == nil {
		return e, nil
	}
	if err := r.Flush(ctx); err != nil {
		l.log.Warn("cannot write to the index before a download", keyID, id, keyError, err)
	}
	return l.entry(ctx, id)
}

func goneError(v View) error {
	switch v.State {
	case Replaced:
		return fmt.Errorf("%w: replaced: the file was changed after artifact %s was final", ErrGone, v.ID)
	case Deleted:
		return fmt.Errorf("%w: deleted: the file of artifact %s is not there any more", ErrGone, v.ID)
	}
	return fmt.Errorf("%w: lost: artifact %s: %s", ErrGone, v.ID, v.LostReason)
}

// openLive opens what v shows. The content closes s.
func (l *Library) openLive(s *shelf, v View) (*content, error) {
	if v.State != Live {
		return nil, goneError(v)
	}
	f, err := s.tree.Open(v.Path())
	if err != nil {
		return nil, fmt.Errorf("%w: artifact %s: %w", ErrGone, v.ID, err)
	}
	id, stamp, err := f.Stat()
	v.State = stateOf(v.Entry, id, stamp, err)
	if v.State != Live {
		f.Close()
		return nil, goneError(v)
	}
	v.Stamp = stamp
	if !v.Final {
		v.MimeType = sniff(f, stamp.Size, v.Path())
	}
	return &content{SectionReader: io.NewSectionReader(f, 0, stamp.Size), file: f, shelf: s, view: v, library: l}, nil
}

// content is an open file of a tree that is checked against what it was when opened.
type content struct {
	*io.SectionReader
	file    File
	shelf   *shelf
	view    View
	library *Library
}

func (c *content) View() View          { return c.view }
func (c *content) Size() int64         { return c.view.Stamp.Size }
func (c *content) ModTime() time.Time  { return time.Unix(0, c.view.Stamp.Mtime).UTC() }
func (c *content) Stamp() change.Stamp { return c.view.Stamp }

func (c *content) Close() error {
	defer c.shelf.close()
	return c.file.Close()
}

// Verify reports ErrGone where the file is not what it was when opened. A change of attributes
// alone, which the record of a final artifact follows, is none.
func (c *content) Verify() error {
	_, stamp, err := c.file.Stat()
	if err != nil {
		return fmt.Errorf("%w: artifact %s: %w", ErrGone, c.view.ID, err)
	}
	if stamp == c.view.Stamp {
		return nil
	}
	if c.view.Final && stamp.Size == c.view.Stamp.Size && c.followed(stamp) {
		return nil
	}
	v := c.view
	v.State = Replaced
	return goneError(v)
}

// followed reports whether the record was brought forward to that stamp.
func (c *content) followed(stamp change.Stamp) bool {
	ctx, cancel := context.WithTimeout(context.Background(), factTimeout)
	defer cancel()
	if r := c.library.recorder(c.view.SessionID); r != nil && r.Flush(ctx) != nil {
		return false
	}
	e, err := c.library.store.Entry(ctx, c.view.ID)
	return err == nil && e.Stamp == stamp
}
