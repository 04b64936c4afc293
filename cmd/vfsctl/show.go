package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// rows shows a listing: a table, or a JSON array with one object a line.
func rows[T any](a *app, items []T, head string, row func(T) []any) error {
	if a.json {
		return jsonRows(a.out, items)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(head), "\t"))
	for _, it := range items {
		fmt.Fprintln(w, cells(row(it)))
	}
	return w.Flush()
}

func cells(vs []any) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		if out[i] = printable(fmt.Sprint(v)); out[i] == "" {
			out[i] = "-"
		}
	}
	return strings.Join(out, "\t")
}

func jsonRows[T any](w io.Writer, items []T) error {
	var b bytes.Buffer
	b.WriteString("[")
	for i, it := range items {
		if i > 0 {
			b.WriteString(",")
		}
		line, err := jsonLine(it)
		if err != nil {
			return err
		}
		b.WriteString("\n")
		b.Write(line)
	}
	if len(items) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("]\n")
	_, err := w.Write(b.Bytes())
	return err
}

// one shows one thing: a JSON object, or what text prints.
func one(a *app, v any, text func()) error {
	if !a.json {
		text()
		return nil
	}
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(line, '\n'))
	return err
}

// jsonLine encodes v and escapes what JSON allows bare and a terminal may obey.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case harmless(r):
			out.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes(), nil
}

// fields shows the named values of one thing, a line each, without the empty ones.
func (a *app) fields(pairs ...any) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if s := printable(fmt.Sprint(pairs[i+1])); s != "" {
			fmt.Fprintf(w, "%v\t%s\n", pairs[i], s)
		}
	}
	w.Flush()
}

// line prints one line.
func (a *app) line(format string, args ...any) {
	fmt.Fprintln(a.out, printable(fmt.Sprintf(format, args...)))
}

// printable makes text of any origin harmless on a terminal and keeps it on one line: what would
// move, colour, hide or turn around is shown escaped.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !harmless(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], string(unicode.ReplacementChar)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// harmless leaves out U+FFFD as well: it may stand for a byte that is no UTF-8.
func harmless(r rune) bool {
	return r != unicode.ReplacementChar && (unicode.IsGraphic(r) || r == ' ')
}
