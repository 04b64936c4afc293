package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

	"aimon.at/vfsd/session"
)

// Client calls the control API. The zero value talks to the default socket. A Client must not be copied
// after its first use; it is safe for concurrent use.
//
// Every error wraps a sentinel of the table in errors.go or is some other failure of the daemon.
type Client struct {
	Socket string // "" for DefaultSocket

	once sync.Once
	http *http.Client // set by once
}

func (c *Client) socket() string {
	if c.Socket != "" {
		return c.Socket
	}
	return DefaultSocket()
}

func (c *Client) init() {
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", c.socket())
			},
			DisableCompression: true,
		},
		// The API never redirects: an answer that does comes from a path that no route has.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// do is every call: it sends in as JSON where it is not nil and hands the body of a successful answer
// to read where that is not nil.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in any, read func(io.Reader) error) error {
	c.once.Do(c.init)
	req, err := newRequest(ctx, method, path, query, in)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failure(res)
	}
	if read == nil {
		return nil
	}
	if err := read(res.Body); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.socket(), err)
	}
	return nil
}

func newRequest(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	u := url.URL{Scheme: "http", Host: "vfsd", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// unanswered explains why no answer came: the dial's failure is ErrUnreachable, a connection that
// broke after it too, the caller's own context is not.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		err = op.Err
	}
	return fmt.Errorf("%w on %s: %w: start it, or name its socket by --socket or %s", ErrUnreachable, c.socket(), err, EnvSocket)
}

// maxErrorBody bounds what is read of an answer that is not a success.
const maxErrorBody = 64 << 10

func failure(res *http.Response) error {
	var b ErrorBody
	if err := json.NewDecoder(io.LimitReader(res.Body, maxErrorBody)).Decode(&b); err != nil || b.Error.Code == "" {
		return fmt.Errorf("vfsd answered %s and no reason: is it of the same version as this program?", res.Status)
	}
	return &b.Error
}

// into returns a reader of JSON into v.
func into(v any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(v) }
}

// get fetches one thing.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	var v T
	err := c.do(ctx, http.MethodGet, path, query, nil, into(&v))
	return v, err
}

// send sends in and returns the answer.
func send[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (T, error) {
	var v T
	err := c.do(ctx, method, path, query, in, into(&v))
	return v, err
}

// pageSize is how many rows a listing asks for at a time.
const pageSize = 1000

// list fetches every page.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", fmt.Sprint(pageSize))
	all := []T{}
	for {
		p, err := get[Page[T]](ctx, c, path, query)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.Next == 0 {
			return all, nil
		}
		query.Set("from", fmt.Sprint(p.Next))
	}
}

// element returns "/v1/noun/id", with what an id cannot be refused: "." and ".." would be another path.
func element(noun, what, id string) (string, error) {
	if err := session.CheckID(what, id); err != nil {
		return "", err
	}
	return "/v1/" + noun + "/" + id, nil
}

// values returns a query of the pairs whose value is not empty.
func values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
