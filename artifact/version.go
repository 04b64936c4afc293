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
	last := Entry{SessionID: e.SessionID, Names: []string{e.Path()}, Artifact: true}
	for _, w := range earlier {
		last.Version = max(last.Version, w.Version)
	}
	v.note(last)
	return nil
}

// give gives an artifact the next version of its path, which learn has looked up. given holds
// what was given and is not written yet. A plain write has no version, and what has one keeps it.
func (v *versions) give(e *Entry, given versions) {
	if !e.Artifact || e.Version > 0 {
		return
	}
	e.Version = max((*v)[e.Path()], given[e.Path()]) + 1
	given[e.Path()] = e.Version
}

// note remembers the version of an artifact that was written.
func (v *versions) note(e Entry) {
	if !e.Artifact {
		return
	}
	if len(*v) >= maxVersions {
		*v = versions{}
	}
	(*v)[e.Path()] = max((*v)[e.Path()], e.Version)
}
