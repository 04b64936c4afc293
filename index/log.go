package index

import (
	"fmt"
	"log/slog"
	"strings"
)

// logger lets Badger log through slog. What Badger calls information is of interest to its
// developers only.
type logger struct{ log *slog.Logger }

func (l logger) Errorf(format string, args ...any)   { l.log.Error(line(format, args)) }
func (l logger) Warningf(format string, args ...any) { l.log.Warn(line(format, args)) }
func (l logger) Infof(format string, args ...any)    { l.log.Debug(line(format, args)) }
func (l logger) Debugf(string, ...any)               {}

func line(format string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
