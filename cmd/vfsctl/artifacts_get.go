package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/change"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (a *app) artifactGetCmd() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "get ID", Short: "Fetch an artifact", Args: cobra.ExactArgs(1),
		Long: "Fetch an artifact into a file of its name in the current directory, which must not exist yet, or into -o FILE, or to standard output with -o -.\n" +
			"A regular FILE is replaced, whole or not at all; into what a symbolic link leads to, and into a device or pipe, the bytes are written as they come.",
		RunE: a.verb(func(ctx context.Context, args []string) error {
			v, err := a.client.Artifact(ctx, args[0])
			if err != nil {
				return err
			}
			if to == "-" {
				return a.getToStdout(ctx, v)
			}
			return a.getToFile(ctx, v, to)
		}),
	}
	c.Flags().StringVarP(&to, "output", "o", "", "the file to write, - for standard output")
	return c
}

// getToFile never replaces a file by a name that the artifact brings along: its author chose it.
func (a *app) getToFile(ctx context.Context, v ctl.Artifact, to string) error {
	replace := to != ""
	if !replace {
		to = localName(v)
	}
	st, err := os.Lstat(to)
	switch {
	case err == nil && !replace:
		return exists(to)
	case err == nil && !st.Mode().IsRegular():
		err = a.fetchInto(ctx, v.ID, to)
	default:
		err = a.fetchWhole(ctx, v.ID, to, replace)
	}
	if err != nil {
		return err
	}
	got := struct {
		ctl.Artifact
		File string `json:"file"`
	}{v, to}
	return one(a, got, func() { a.line("%s  %s", to, size(v.Size)) })
}

// fetchInto writes into what exists, as cp(1) does: a rename would replace a device or a link by a file.
func (a *app) fetchInto(ctx context.Context, id, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return errors.Join(a.client.Content(ctx, id, f), f.Close())
}

// fetchWhole writes a temporary file beside the target and renames it once it is whole.
func (a *app) fetchWhole(ctx context.Context, id, to string, replace bool) error {
	f, err := os.CreateTemp(filepath.Dir(to), ".vfsctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where it got its name
	defer f.Close()
	if err := a.client.Content(ctx, id, f); err != nil {
		return err
	}
	if err := f.Chmod(0o666 &^ umask()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return rename(f.Name(), to, replace)
}

// rename gives the file its name. Where the file system knows no RENAME_NOREPLACE, a hard link does the same.
func rename(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		err = os.Link(from, to)
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(to)
	}
	return err
}

func exists(to string) error {
	return fmt.Errorf("%w: %s exists: say where to by -o FILE", session.ErrConflict, to)
}

// localName is the artifact's own name, with what a terminal may obey replaced, and a first character that hides
// the file or makes an option of it: a .bash_profile would be run.
func localName(v ctl.Artifact) string {
	name, err := change.UnescapePath(v.FileName, v.PathEscaped)
	if err != nil {
		name = v.FileName
	}
	local := []byte(name)
	for i, c := range local {
		if c < ' ' || c == 0x7f || c == '/' || i == 0 && (c == '.' || c == '-') {
			local[i] = '_'
		}
	}
	if len(local) == 0 || name == "." || name == ".." {
		return "artifact"
	}
	return string(local)
}

func umask() fs.FileMode {
	m := unix.Umask(0)
	unix.Umask(m)
	return fs.FileMode(m)
}

// getToStdout writes bytes as they are, except to a terminal: there, control characters are shown and
// not obeyed.
func (a *app) getToStdout(ctx context.Context, v ctl.Artifact) error {
	f, ok := a.out.(*os.File)
	if !ok || !terminal(f) {
		return a.client.Content(ctx, v.ID, a.out)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.client.Content(ctx, v.ID, w)) }()
	return showText(a.out, r)
}

func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func showText(w io.Writer, r io.Reader) error {
	in, out := bufio.NewReader(r), bufio.NewWriter(w)
	defer out.Flush()
	for {
		c, n, err := in.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c == unicode.ReplacementChar && n == 1:
			out.WriteByte('?')
		case c == '\n', c == '\t', harmless(c):
			out.WriteRune(c)
		default:
			out.WriteString(printable(string(c)))
		}
	}
}
