package ctl

import (
	"context"
	"net/http"
)

// Status returns how the daemon stands.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/v1/status", nil)
}

// Mounts returns the live mounts that the caller may see.
func (c *Client) Mounts(ctx context.Context) ([]Mount, error) {
	return list[Mount](ctx, c, "/v1/mounts", nil)
}

// Mount adds a mount. It is a verb of root and the daemon's own user.
func (c *Client) Mount(ctx context.Context, r MountRequest) (Mount, error) {
	return send[Mount](ctx, c, http.MethodPost, "/v1/mounts", nil, r)
}

// Unmount removes a mount; a busy one is detached. It is a verb of root and the daemon's own user.
func (c *Client) Unmount(ctx context.Context, mountpoint string) (Unmounted, error) {
	return send[Unmounted](ctx, c, http.MethodDelete, "/v1/mounts", values("mountpoint", mountpoint), nil)
}

// Check compares the index with itself and with the files. It is a verb of root and the daemon's own user.
func (c *Client) Check(ctx context.Context) (Problems, error) {
	return send[Problems](ctx, c, http.MethodPost, "/v1/check", nil, nil)
}
