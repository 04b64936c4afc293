package server

import (
	"io"
	"net/http"
	"strconv"

	"aimon.at/vfsd/artifact"
)

func (s *Server) artifactContent(r request) (any, error) {
	if _, err := s.visible(r, r.PathValue("id")); err != nil {
		return nil, err
	}
	c, err := s.Artifacts.Open(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return download{c}, nil
}

// download answers with the bytes of an artifact.
type download struct{ content artifact.Content }

// writeTo verifies before the first byte, so that a failure is still an answer, and before the last
// one: then the connection is cut, which the peer sees by the announced length.
func (d download) writeTo(w http.ResponseWriter) error {
	defer d.content.Close()
	if err := d.content.Verify(); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(d.content.Size(), 10))
	held := max(d.content.Size()-1, 0)
	if _, err := io.CopyN(w, d.content, held); err != nil {
		panic(http.ErrAbortHandler)
	}
	last := make([]byte, d.content.Size()-held)
	if _, err := io.ReadFull(d.content, last); err != nil || d.content.Verify() != nil {
		panic(http.ErrAbortHandler)
	}
	w.Write(last)
	return nil
}
