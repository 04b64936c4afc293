package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "dev"

func newCommand(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "vfsd",
		Short:         "A file system that knows which tool call made which file",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(mountCommand(stdout, stderr), serveCommand(stdout, stderr), versionCommand(stdout))
	return root
}

// usage makes what validate finds a usage error.
func usage(validate cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := validate(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

func versionCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, "vfsd", version)
			return err
		},
	}
}

func mountCommand(stdout, stderr io.Writer) *cobra.Command {
	cfg, m := defaultConfig(), defaultMount()
	cmd := &cobra.Command{
		Use:   "mount SOURCE MOUNTPOINT",
		Short: "Serve one mount in the foreground until SIGINT or SIGTERM",
		Args:  usage(cobra.ExactArgs(2)),
	}
	daemonFlags(cmd.Flags(), &cfg)
	mountFlags(cmd.Flags(), &m)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		m.Source, m.Mountpoint = args[0], args[1]
		m.Artifacts = onOff{set: true, on: m.Artifacts.or(true)}
		cfg.Mounts = []mountConfig{m}
		if err := cfg.check(); err != nil {
			return usageError{err}
		}
		log, err := newLogger(stderr, cfg)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg, foreground, stdout, log)
	}
	return cmd
}

func serveCommand(stdout, stderr io.Writer) *cobra.Command {
	flags := defaultConfig()
	var file string
	cmd := &cobra.Command{
		Use:   "serve [--config vfsd.yaml]",
		Short: "Serve without a mount; mounts come from the configuration or from vfsctl mount",
		Args:  usage(cobra.NoArgs),
	}
	daemonFlags(cmd.Flags(), &flags)
	cmd.Flags().StringVar(&file, "config", "", "configuration `file` (YAML; keys are the flags' names)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		cfg := defaultConfig()
		if file != "" {
			if err := readConfig(file, &cfg); err != nil {
				return err
			}
		}
		overlay(cmd.Flags(), &cfg)
		if err := cfg.check(); err != nil {
			return usageError{err}
		}
		log, err := newLogger(stderr, cfg)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg, standing, stdout, log)
	}
	return cmd
}

func daemonFlags(f *pflag.FlagSet, c *config) {
	f.StringVar(&c.StateDir, "state-dir", c.StateDir, "`directory` of the index")
	f.StringVar(&c.Socket, "socket", c.Socket, "`path` of the control socket")
	f.StringVar(&c.HTTP, "http", c.HTTP, "`address` of the gateway for downloads, or off")
	f.StringVar(&c.PublicURL, "public-url", c.PublicURL, "what links start with, when a proxy stands before the gateway (`URL`)")
	f.Var(&c.MaxTokenTTL, "max-token-ttl", "the longest life a download token may be given")
	f.BoolVar(&c.AllowForeignPID, "allow-foreign-pid-namespaces", c.AllowForeignPID, "answer peers of the control socket from other pid namespaces")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
}

func mountFlags(f *pflag.FlagSet, m *mountConfig) {
	f.StringVar(&m.Session, "session", m.Session, "session `ID` (default: the mountpoint's base name and 6 hex digits of the source's path)")
	f.StringVar(&m.Owner, "owner", m.Owner, "owner of the session: user `name` or uid (default: the calling user)")
	f.Var(&m.Artifacts, "artifacts", "whether undeclared files are artifacts in new executions (default on)")
	f.BoolVar(&m.AllowOther, "allow-other", m.AllowOther, "other users may enter")
	f.Var(&m.CacheTimeout, "cache-timeout", "how long the kernel may trust names and attributes")
	f.BoolVar(&m.Exclusive, "exclusive", m.Exclusive, "nobody else touches the tree: cache for long")
	f.StringVar(&m.Passthrough, "passthrough", m.Passthrough, "kernel passthrough of file data: auto or off")
}

// fromEnvironment sets every flag that the command line left out from VFSD_<NAME>.
func fromEnvironment(f *pflag.FlagSet) error {
	var failed error
	f.VisitAll(func(flag *pflag.Flag) {
		name := "VFSD_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if flag.Changed || !ok || flag.Name == "help" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil && failed == nil {
			failed = usageError{fmt.Errorf("%s=%q in the environment: %w", name, value, err)}
		}
	})
	return failed
}

// overlay lays what was given by flag or environment over what the configuration file set.
func overlay(given *pflag.FlagSet, c *config) {
	onto := pflag.NewFlagSet("", pflag.ContinueOnError)
	daemonFlags(onto, c)
	given.Visit(func(flag *pflag.Flag) {
		if onto.Lookup(flag.Name) != nil {
			// The value was accepted once already.
			_ = onto.Set(flag.Name, flag.Value.String())
		}
	})
}

func newLogger(w io.Writer, c config) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q: use debug, info, warn or error", c.LogLevel)}
	}
	opts := &slog.HandlerOptions{Level: level}
	switch c.LogFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: use text or json", c.LogFormat)}
}
