package deps

import (
	_ "github.com/coreos/go-systemd/v22/daemon"
	_ "github.com/dgraph-io/badger/v4"
	_ "github.com/gabriel-vasile/mimetype"
	_ "github.com/go-git/go-git/v5/plumbing/format/gitignore"
	_ "github.com/hanwen/go-fuse/v2/fuse"
	_ "github.com/hanwen/go-fuse/v2/posixtest"
	_ "github.com/oklog/ulid/v2"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sync/semaphore"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
)
