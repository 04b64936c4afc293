package artifact

import (
	"path"
	"strings"
)

// folders maps the names of directories whose content is never made for a user. Only names that
// belong to a tool are here: build, dist, target, vendor and the like may well hold what the
// user asked for.
var folders = map[string]string{
	".git": ReasonVCS, ".hg": ReasonVCS, ".svn": ReasonVCS, ".bzr": ReasonVCS, ".jj": ReasonVCS,

	"node_modules": ReasonDependency, "bower_components": ReasonDependency, ".pnpm-store": ReasonDependency,
	".venv": ReasonDependency, "venv": ReasonDependency, "site-packages": ReasonDependency,
	".tox": ReasonDependency, ".nox": ReasonDependency, ".eggs": ReasonDependency,
	".gradle": ReasonDependency, ".m2": ReasonDependency, ".cargo": ReasonDependency,
	".bundle": ReasonDependency, ".terraform": ReasonDependency,

	"__pycache__": ReasonCache, ".cache": ReasonCache, ".npm": ReasonCache, ".yarn": ReasonCache,
	".pytest_cache": ReasonCache, ".mypy_cache": ReasonCache, ".ruff_cache": ReasonCache,
	".hypothesis": ReasonCache, ".ipynb_checkpoints": ReasonCache, ".parcel-cache": ReasonCache,
	".sass-cache": ReasonCache, ".nyc_output": ReasonCache,
}

// files maps names of single files. A submodule's or worktree's .git is a file.
var files = map[string]string{
	".git": ReasonVCS, ".eslintcache": ReasonCache, ".DS_Store": ReasonCache, "Thumbs.db": ReasonCache,
}

// suffixes and prefixes of file names. What could be a name that a user chose (.bak, .orig, .lock:
// a database dump, a project's lock file) is not here.
var (
	cacheSuffixes     = []string{".pyc", ".pyo"}
	temporarySuffixes = []string{"~", ".tmp", ".temp", ".swp", ".swo", ".swn", ".swx", ".kate-swp", ".lck",
		".part", ".partial", ".crdownload",
		".db-wal", ".db-shm", ".db-journal", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal",
		".sqlite3-wal", ".sqlite3-shm", ".sqlite3-journal"}
	temporaryPrefixes = []string{".#", "~$", ".~lock.", ".goutputstream-", ".nfs0", ".fuse_hidden"}
)

// builtIn returns the reason of the built-in rule that says no to the file at p, "" for none.
func builtIn(p string) string {
	dir, name := path.Split(p)
	for element := range strings.SplitSeq(dir, "/") {
		if reason := folders[element]; reason != "" {
			return reason
		}
	}
	switch {
	case files[name] != "":
		return files[name]
	case hasAny(name, cacheSuffixes, strings.HasSuffix):
		return ReasonCache
	case hasAny(name, temporarySuffixes, strings.HasSuffix), hasAny(name, temporaryPrefixes, strings.HasPrefix),
		len(name) > 2 && name[0] == '#' && name[len(name)-1] == '#': // Emacs auto-save
		return ReasonTemporary
	}
	return ""
}

func hasAny(name string, marks []string, has func(s, mark string) bool) bool {
	for _, m := range marks {
		if has(name, m) {
			return true
		}
	}
	return false
}
