package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/session"
)

// manner is how the daemon lives.
type manner int

const (
	foreground manner = iota // with its one mount: it ends when that is unmounted from outside
	standing                 // until it is told to end; mounts come and go
)

// stopTimeout bounds what an orderly end may take: unmounting and writing what is pending.
const stopTimeout = 20 * time.Second

// run serves until ctx is done. Everything that can be refused is refused before the ready line is
// printed, and what was begun by then is undone.
func run(ctx context.Context, cfg config, how manner, stdout io.Writer, log *slog.Logger) (err error) {
	lock, err := openStateDir(cfg.StateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	control, err := listenControl(cfg.Socket)
	if err != nil {
		return err
	}
	defer control.Close()
	web, err := listenHTTP(cfg.HTTP)
	if err != nil {
		return err
	}
	if web != nil {
		defer web.Close()
	}
	d, err := newDaemon(cfg, web, log)
	if err != nil {
		return err
	}
	defer func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, d.close(grace))
	}()
	return d.serve(ctx, how, control, web, stdout)
}

func listenControl(socket string) (net.Listener, error) {
	if socket == "" {
		return nil, fmt.Errorf("%w: no control socket is known; set --socket", session.ErrInvalid)
	}
	return server.Listen(socket)
}

// listenHTTP returns nil where there is to be no gateway.
func listenHTTP(addr string) (net.Listener, error) {
	if addr == "off" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w gateway address: %v; choose another with --http, or --http off", session.ErrInvalid, err)
	}
	return l, nil
}

// serve mounts what is configured, says that it is ready and answers until ctx is done, a server
// fails, or, in the foreground, the mount has ended.
func (d *vfsd) serve(ctx context.Context, how manner, control, web net.Listener, stdout io.Writer) error {
	// The servers outlive the unmounting, which vfsctl may be waiting for.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, failed := errgroup.WithContext(serving)
	group.Go(func() error { return d.control.Serve(failed, control) })
	if web != nil {
		group.Go(func() error { return d.gateway.Serve(failed, web) })
	}
	group.Go(func() error { return d.cleanTokens(failed) })
	err := d.serveMounts(ctx, failed, how, web, stdout)
	stop()
	if served := group.Wait(); served != nil && !errors.Is(served, context.Canceled) {
		err = errors.Join(err, served)
	}
	return err
}

func (d *vfsd) serveMounts(ctx, failed context.Context, how manner, web net.Listener, stdout io.Writer) error {
	var ended <-chan struct{}
	for _, m := range d.cfg.Mounts {
		done, err := d.mounts.mountConfigured(ctx, m)
		if err != nil {
			return err
		}
		if how == foreground {
			ended = done
		}
	}
	if err := d.ready(web, stdout); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-failed.Done():
	case <-ended:
		d.log.Info("the mount was unmounted from outside")
	}
	d.notify(daemon.SdNotifyStopping)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return d.mounts.unmountAll(grace)
}

// ready prints the one line of stdout and tells systemd.
func (d *vfsd) ready(web net.Listener, stdout io.Writer) error {
	line := []string{"ready"}
	for _, m := range d.mounts.Mounts() {
		line = append(line, "mount="+m.Mountpoint)
	}
	line = append(line, "socket="+d.cfg.Socket)
	if web == nil {
		line = append(line, "http=off")
	} else {
		line = append(line, "http=http://"+web.Addr().String())
	}
	if _, err := fmt.Fprintln(stdout, strings.Join(line, " ")); err != nil {
		return fmt.Errorf("print the ready line: %w", err)
	}
	d.notify(daemon.SdNotifyReady)
	return nil
}

// cleanTokens removes tokens that expired long ago, now and then.
func (d *vfsd) cleanTokens(ctx context.Context) error {
	every := time.NewTicker(time.Hour)
	defer every.Stop()
	for {
		if _, err := d.tokens.Clean(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("expired tokens could not be removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (d *vfsd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		d.log.Warn("systemd could not be told", "state", state, "err", err)
	}
}
