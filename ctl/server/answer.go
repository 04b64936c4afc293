package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl"
	"aimon.at/vfsd/session"
)

// maxBody bounds a request's body.
const maxBody = 1 << 20

// request is a request with its judged caller.
type request struct {
	*http.Request
	caller  session.Caller
	control *http.ResponseController
}

// route is one row of the API. A handler returns the value to answer with, or an error.
type route struct {
	pattern string
	params  []string // the query parameters that it knows
	handle  func(request) (any, error)
}

// writerTo is a value that writes its answer itself. It returns an error only before its first byte.
type writerTo interface {
	writeTo(w http.ResponseWriter) error
}

// serve is the one place where answers are written.
func (s *Server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		defer func() { s.metrics.request(rt.pattern, status) }()
		v, err := s.run(w, rt, r)
		if wt, ok := v.(writerTo); ok && err == nil {
			if err = wt.writeTo(w); err == nil {
				return
			}
		}
		if err != nil {
			status, v = s.failure(r, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v) // a failure here is the peer's: it has gone
	}
}

func (s *Server) run(w http.ResponseWriter, rt route, r *http.Request) (any, error) {
	c, err := s.caller(r.Context())
	if err != nil {
		return nil, err
	}
	for name, vs := range r.URL.Query() {
		if !slices.Contains(rt.params, name) || len(vs) != 1 {
			return nil, fmt.Errorf("%w: parameter %.40q is unknown here or given twice", session.ErrInvalid, name)
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return rt.handle(request{r, c, http.NewResponseController(w)})
}

// failure translates err, and says the text of an internal failure only to who may know it.
func (s *Server) failure(r *http.Request, err error) (int, ctl.ErrorBody) {
	if errors.Is(err, artifact.ErrGone) {
		err = gone{err}
	}
	k := ctl.KindOf(err)
	msg := err.Error()
	if k.Sentinel == nil {
		s.log.Error("control request failed", "route", r.Pattern, "error", err)
		if c, cerr := s.caller(r.Context()); cerr != nil || !c.Privileged {
			msg = "vfsd failed internally: its log says how"
		}
	}
	return k.HTTP, ctl.ErrorBody{Error: ctl.Error{Code: k.Code, Message: msg}}
}

// gone is artifact.ErrGone as the table of package ctl knows it, in the same words.
type gone struct{ error }

func (g gone) Is(target error) bool { return target == ctl.ErrGone }
func (g gone) Unwrap() error        { return g.error }

// admitted lets requests through whose peer may call at all.
func (s *Server) admitted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.caller(r.Context()); err != nil {
			status, v := s.failure(r, err)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(v)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// decode reads the body: one JSON object with known fields only.
func decode[T any](r request) (T, error) {
	var none T
	var v *T // null leaves it nil
	// Writers without deadlines, as in tests, have nothing to wait for.
	_ = r.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer r.control.SetReadDeadline(time.Time{})
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return none, fmt.Errorf("%w request body: %w", session.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("%w request body: more than one JSON value", session.ErrInvalid)
	}
	if v == nil {
		return none, fmt.Errorf("%w request body: null is no object", session.ErrInvalid)
	}
	return *v, nil
}

func (r request) query(name string) string { return r.URL.Query().Get(name) }

// number returns a parameter that is a number, 0 where it is absent.
func (r request) number(name string) (uint64, error) {
	v := r.query(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%w: parameter %s=%.40q is no number", session.ErrInvalid, name, v)
	}
	return n, nil
}

// flag returns a parameter that is true or false, and fallback where it is absent.
func (r request) flag(name string, fallback bool) (bool, error) {
	v := r.query(name)
	if v == "" {
		return fallback, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("%w: parameter %s=%.40q is neither true nor false", session.ErrInvalid, name, v)
	}
	return b, nil
}

// rooted refuses callers that are neither root nor the daemon's own user.
func (r request) rooted(verb string) error {
	if !r.caller.Privileged {
		return fmt.Errorf("%w: %s is for root and the daemon's own user", session.ErrNotAllowed, verb)
	}
	return nil
}
