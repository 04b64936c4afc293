package main

import (
	"fmt"
	"time"
)

// size shows bytes for people.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1024, "KMGTPE"
	for v >= 1023.95 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, units[0])
}

// ago shows a moment for people, ahead ones too.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	if d < 0 {
		return "in " + span(-d)
	}
	if d < time.Second {
		return "now"
	}
	return span(d) + " ago"
}

func agoOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return ago(*t)
}

// span shows a duration by its greatest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
