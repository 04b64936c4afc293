package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// config is everything that can be set, after flags, environment and file were put together.
type config struct {
	StateDir  string `yaml:"state-dir"`
	Socket    string `yaml:"socket"`
	HTTP      string `yaml:"http"` // "off" for none
	PublicURL string `yaml:"public-url"`
	LogFormat string `yaml:"log-format"`
	LogLevel  string `yaml:"log-level"`

	MaxTokenTTL     duration `yaml:"max-token-ttl"`
	AllowForeignPID bool     `yaml:"allow-foreign-pid-namespaces"`

	Mounts []mountConfig `yaml:"mounts"`
}

// mountConfig is one mount.
type mountConfig struct {
	Source       string   `yaml:"source"`
	Mountpoint   string   `yaml:"mountpoint"`
	Session      string   `yaml:"session"`
	Owner        string   `yaml:"owner"` // name or uid; "" for the calling user
	Artifacts    onOff    `yaml:"artifacts"`
	AllowOther   bool     `yaml:"allow-other"`
	Exclusive    bool     `yaml:"exclusive"`
	CacheTimeout duration `yaml:"cache-timeout"`
	Passthrough  string   `yaml:"passthrough"` // "auto" or "off"
}

func defaultConfig() config {
	return config{
		StateDir:    defaultStateDir(),
		Socket:      ctl.DefaultSocket(),
		HTTP:        "127.0.0.1:8750",
		LogFormat:   "text",
		LogLevel:    "info",
		MaxTokenTTL: duration(30 * 24 * time.Hour),
	}
}

func defaultMount() mountConfig {
	return mountConfig{CacheTimeout: duration(time.Second), Passthrough: "auto"}
}

func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/vfsd"
	}
	if base := os.Getenv("XDG_STATE_HOME"); base != "" {
		return filepath.Join(base, "vfsd")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "vfsd")
	}
	return ""
}

// UnmarshalYAML gives every mount of the file the defaults that a command line has. A node's own Decode
// knows nothing of KnownFields, so the mount is encoded once more.
func (m *mountConfig) UnmarshalYAML(n *yaml.Node) error {
	type plain mountConfig
	raw, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	v := plain(defaultMount())
	if err := decodeKnown(raw, &v); err != nil {
		return err
	}
	*m = mountConfig(v)
	return nil
}

// decodeKnown decodes a document in which every key must be known.
func decodeKnown(raw []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		// The library says it in several lines and in Go's types.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		why, _, _ := strings.Cut(strings.TrimSpace(lines[len(lines)-1]), " in type ")
		why, _, _ = strings.Cut(why, " into ")
		return errors.New(strings.TrimPrefix(why, "yaml: "))
	}
	return nil
}

// readConfig lays the file at path over c. Unknown keys are errors: a misspelt one must not be
// passed over.
func readConfig(path string, c *config) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w configuration: %v", session.ErrInvalid, err)
	}
	if err := decodeKnown(raw, c); err != nil {
		return fmt.Errorf("%w configuration %s: %v; the keys are the names of the flags", session.ErrInvalid, path, err)
	}
	return nil
}

// check refuses values that cannot be meant, before anything is touched.
func (c *config) check() error {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.HTTP != "off" {
		if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
			return fmt.Errorf("%w --http %q: write host:port, or off", session.ErrInvalid, c.HTTP)
		}
	} else if c.PublicURL != "" {
		return fmt.Errorf("%w --public-url: there is no gateway behind it with --http off", session.ErrInvalid)
	}
	if c.MaxTokenTTL <= 0 {
		return fmt.Errorf("%w --max-token-ttl: it must be positive", session.ErrInvalid)
	}
	for _, m := range c.Mounts {
		if err := m.check(); err != nil {
			return err
		}
	}
	return nil
}

func (m mountConfig) check() error {
	if m.Source == "" || m.Mountpoint == "" {
		return fmt.Errorf("%w mount: it needs a source and a mountpoint", session.ErrInvalid)
	}
	if m.Passthrough != "auto" && m.Passthrough != "off" {
		return fmt.Errorf("%w --passthrough %q: use auto or off", session.ErrInvalid, m.Passthrough)
	}
	if m.Session != "" {
		if err := session.CheckID("session", m.Session); err != nil {
			return err
		}
	}
	_, err := m.owner()
	return err
}

// duration is a time.Duration that YAML and flags write as "1s".
type duration time.Duration

func (d *duration) UnmarshalYAML(n *yaml.Node) error { return d.Set(n.Value) }
func (d *duration) String() string                   { return time.Duration(*d).String() }
func (d *duration) Type() string                     { return "duration" }

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration: write 500ms, 1s or 2m", s)
	}
	*d = duration(v)
	return nil
}

// onOff is a switch that may be unset, which leaves the choice to a default.
type onOff struct{ set, on bool }

func (o *onOff) UnmarshalYAML(n *yaml.Node) error { return o.Set(n.Value) }
func (o *onOff) Type() string                     { return "on|off" }

func (o *onOff) String() string {
	switch {
	case !o.set:
		return ""
	case o.on:
		return "on"
	}
	return "off"
}

func (o *onOff) Set(s string) error {
	switch s {
	case "on", "true":
		*o = onOff{set: true, on: true}
	case "off", "false":
		*o = onOff{set: true}
	default:
		return fmt.Errorf("%q is neither on nor off", s)
	}
	return nil
}

// or returns the switch, or byDefault where it is unset.
func (o onOff) or(byDefault bool) bool {
	if o.set {
		return o.on
	}
	return byDefault
}

// owner returns the uid that m is for; left out, it is the calling user.
func (m mountConfig) owner() (uint32, error) {
	if m.Owner == "" {
		return uint32(os.Getuid()), nil
	}
	return ctl.LookupOwner(m.Owner)
}
