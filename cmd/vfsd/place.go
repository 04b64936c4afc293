package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"

	"aimon.at/vfsd/fusefs"
	"aimon.at/vfsd/session"
)

// place is a directory that takes part in a mount, with symbolic links resolved.
type place struct {
	what string // "source", "mountpoint", "state directory"
	path string
	kind error // what overlapping it is: session.ErrConflict where it is another mount's, else session.ErrInvalid

	// mounted says that a file system is mounted there: it is told by its name alone, since a look at it
	// is answered by its daemon, or by nobody.
	mounted bool
}

func (p place) contains(path string) bool {
	if p.mounted {
		return path == p.path || strings.HasPrefix(path, strings.TrimSuffix(p.path, "/")+"/")
	}
	return contains(p.path, path)
}

func (p place) isIn(dir string) bool {
	if p.mounted {
		return p.path == dir || contains(dir, filepath.Dir(p.path))
	}
	return contains(dir, p.path)
}

// resolveSource returns the real path of a source directory.
func resolveSource(source string) (string, error) {
	if strings.Contains(source, "://") {
		return "", fmt.Errorf("%w source %q: only directories can be mounted", session.ErrInvalid, source)
	}
	path, err := realPath(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w source %q: it does not exist; create the directory first", session.ErrInvalid, source)
	case err != nil:
		return "", fmt.Errorf("%w source %q: %v", session.ErrInvalid, source, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w source %q: %v", session.ErrInvalid, source, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%w source %q: it is not a directory", session.ErrInvalid, source)
	}
	return path, nil
}

func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// checkSource refuses a source that equals, contains or lies in another place: what is written to
// one would appear in the other, with two names and two attributions, or without end.
func checkSource(source string, others []place) error {
	for _, o := range others {
		switch {
		case o.contains(source) && o.isIn(source):
			return fmt.Errorf("%w: source %s is the same directory as the %s %s; choose another", o.kind, source, o.what, o.path)
		case o.isIn(source):
			return fmt.Errorf("%w: source %s contains the %s %s; move one of them", o.kind, source, o.what, o.path)
		case o.contains(source):
			return fmt.Errorf("%w: source %s lies in the %s %s; move one of them", o.kind, source, o.what, o.path)
		}
	}
	return nil
}

// checkMountpoint refuses a mountpoint inside a source or another mount.
func checkMountpoint(mountpoint string, others []place) error {
	for _, o := range others {
		if o.contains(mountpoint) {
			return fmt.Errorf("%w: mountpoint %s lies in the %s %s; choose another", o.kind, mountpoint, o.what, o.path)
		}
	}
	return nil
}

// contains reports whether dir is path or one of the directories above it. It compares inodes as
// well as names, so that a bind mount of a directory is seen for what it is.
func contains(dir, path string) bool {
	want, err := os.Lstat(dir)
	for {
		if path == dir {
			return true
		}
		if err == nil {
			if info, err := os.Lstat(path); err == nil && os.SameFile(want, info) {
				return true
			}
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
}

// liveMounts are the sources and mountpoints of all live daemons, this one included, as the table of
// mounts has them. A mount on mountpoint itself is left out: whether it may be taken over was settled before.
func liveMounts(mountpoint string) ([]place, error) {
	table, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("fuse.vfsd"))
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	var places []place
	for _, m := range table {
		if m.Mountpoint == mountpoint || !fusefs.Live(m.Mountpoint) {
			continue
		}
		places = append(places,
			place{what: "mountpoint", path: m.Mountpoint, kind: session.ErrConflict, mounted: true},
			place{what: "source of the mount on " + m.Mountpoint + ":", path: m.Source, kind: session.ErrConflict})
	}
	return places, nil
}

// defaultSession names the session of a mount: the mountpoint's base name, with what an id cannot
// hold replaced, and six hex digits of the source's path, so that two mounts of the same name on
// different sources are two sessions.
func defaultSession(mountpoint, source string) string {
	base := []byte(filepath.Base(mountpoint))
	for i, c := range base {
		if session.CheckID("", "_"+string(c)) != nil {
			base[i] = '_'
		}
	}
	const most = 100
	if len(base) > most {
		base = base[:most]
	}
	if session.CheckID("", string(base)) != nil {
		base = append([]byte("_"), base...)
	}
	sum := sha256.Sum256([]byte(source))
	return string(base) + "-" + hex.EncodeToString(sum[:3])
}
