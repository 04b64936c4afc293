package artifact

import (
	"context"
	"fmt"
)

// maxVersions bounds how many paths' latest versions are kept at hand.
const maxVersions = 100_000

// versions is the latest version given to each path. Guarded by Recorder.storing.
type versions map[string]int

// learn looks up the latest version of an artifact's path where it is not at hand.
func (v *versions) learn(ctx context.Context, store Store, e Entry) error {
	if _, known := (*v)[e.Path()]; known || !e.Artifact {
		return nil
	}
	earlier, err := store.Versions(ctx, e.SessionID, e.Path())
	if err != nil {
		return fmt.Errorf("look up versions: %w", err)
	}
	last := Entry{Names: []string{e.Path()}}
	for _, w := range earlier {
		last.Version = max(last.Version, w.Version)
	}
	v.note(last)
	return nil
}

// give gives an artifact the next version of its path, which learn has looked up. A plain write has
// no version, and what has one keeps it.
func (v *versions) give(e *Entry) {
	if !e.Artifact {
		return
	}
	if e.Version == 0 {
		e.Version = (*v)[e.Path()] + 1
	}
	v.note(*e)
}

// note remembers the version of an artifact.
func (v *versions) note(e Entry) {
	if len(*v) >= maxVersions {
		*v = versions{}
	}
	(*v)[e.Path()] = max((*v)[e.Path()], e.Version)
}
