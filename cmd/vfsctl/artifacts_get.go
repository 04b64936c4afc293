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
	"strings"
	"unicode"

	"aimon.at/vfsd/change"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

func (a *app) artifactGetCmd() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "get ID", Short: "Fetch an artifact", Args: cobra.ExactArgs(1),
		Long: "Fetch an artifact into a file of its name in the current directory, which must not exist yet, or into -o FILE, which is replaced, or to standard output with -o -.",
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

// getToFile writes a temporary file beside the target and renames it once it is whole. A name that the
// artifact brings along never replaces a file: its author chose it.
func (a *app) getToFile(ctx context.Context, v ctl.Artifact, to string) error {
	replace := to != ""
	if !replace {
		to = localName(v)
		if _, err := os.Lstat(to); err == nil {
			return exists(to)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".vfsctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where it got its name
	defer f.Close()
	if err := a.client.Content(ctx, v.ID, f); err != nil {
		return err
	}
	if err := f.Chmod(0o666 &^ umask()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := rename(f.Name(), to, replace); err != nil {
		return err
	}
	got := struct {
		ctl.Artifact
		File string `json:"file"`
	}{v, to}
	return one(a, got, func() { a.line("%s  %s", to, size(v.Size)) })
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

// localName is the artifact's own name, with what a terminal may obey replaced.
func localName(v ctl.Artifact) string {
	name, err := change.UnescapePath(v.FileName, v.PathEscaped)
	if err != nil {
		name = v.FileName
	}
	local := []byte(name)
	for i, c := range local {
		if c < ' ' || c == 0x7f || c == '/' {
			local[i] = '_'
		}
	}
	name = string(local)
	if strings.Trim(name, ".") == "" {
		return "artifact"
	}
	return name
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
