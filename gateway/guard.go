package gateway

import (
	"io"
	"net"
	"net/http"
	"strings"
)

// policy lets a file that a browser shows load nothing, run nothing and act as no origin. Styles are
// allowed inline because browsers style the page around a bare image with one.
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; sandbox"

// guarded sets the headers that every answer has, failures included.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hd := w.Header()
		hd.Set("X-Content-Type-Options", "nosniff")
		hd.Set("Referrer-Policy", "no-referrer")
		hd.Set("Cache-Control", "private, no-store")
		hd.Set("Content-Security-Policy", policy)
		extend(http.NewResponseController(w))
		h.ServeHTTP(w, r)
	})
}

func readOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Connection", "close")
			w.Header().Set("Allow", "GET, HEAD")
			line(w, http.StatusMethodNotAllowed, "only GET and HEAD are served here")
			return
		}
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // so that the body is not waited for
			line(w, http.StatusBadRequest, "requests have no body here")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// localOnly answers a peer on this machine that speaks for itself. A proxy on this machine speaks
// for somebody else and says so by one of these headers.
func localOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.RemoteAddr) || forwarded(r.Header) {
			notFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func forwarded(h http.Header) bool {
	for name := range h {
		switch {
		case strings.HasPrefix(name, "X-Forwarded"), name == "Forwarded", name == "Via",
			name == "X-Real-Ip", name == "X-Original-Forwarded-For", name == "Cf-Connecting-Ip", name == "True-Client-Ip":
			return true
		}
	}
	return false
}

func healthy(w http.ResponseWriter, _ *http.Request) { line(w, http.StatusOK, "ok") }

func notFound(w http.ResponseWriter, _ *http.Request) { line(w, http.StatusNotFound, "not found") }

// line answers with one line of text.
func line(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	io.WriteString(w, text+"\n")
}
