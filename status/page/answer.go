package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"
)

// leastZipped is the minimum size in bytes of a response that is compressed.
const leastZipped = 1400

var zippers = sync.Pool{New: func() any {
	// The fastest level already shrinks pages to a tenth.
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("status: " + err.Error()) // the level is valid
	}
	return z
}}

// send writes a response, compressed if the client accepts that. The response contains no secret, so its
// length reveals none.
func send(rw http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := rw.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) < leastZipped || !takesGzip(r) {
		rw.WriteHeader(status)
		_, _ = rw.Write(body) // ignore a disconnected reader
		return
	}
	h.Set("Content-Encoding", "gzip")
	rw.WriteHeader(status)
	z := zippers.Get().(*gzip.Writer)
	z.Reset(rw)
	_, _ = z.Write(body) // ignore a disconnected reader
	_ = z.Close()
	zippers.Put(z)
}

func takesGzip(r *http.Request) bool {
	for _, one := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if name == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// packed is a response in memory until its ETag is computed. It is compressed, because that reduces a list
// of pools to a twentieth.
type packed struct {
	bytes.Buffer
	length int
	sum    hash.Hash
}

// pack encodes and compresses a value.
func pack(v any) (*packed, error) {
	p := &packed{sum: sha256.New()}
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&p.Buffer)
	if err := indented(io.MultiWriter(z, p.sum, (*counter)(&p.length)), v); err != nil {
		return nil, err
	}
	return p, z.Close()
}

// counter counts the written bytes.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (p *packed) send(rw http.ResponseWriter, r *http.Request) error {
	rw.Header().Add("Vary", "Accept-Encoding")
	if p.length >= leastZipped && takesGzip(r) {
		rw.Header().Set("Content-Encoding", "gzip")
		_, _ = rw.Write(p.Bytes()) // ignore a disconnected reader
		return nil
	}
	z, err := gzip.NewReader(p)
	if err != nil {
		return err
	}
	_, _ = io.Copy(rw, z) //nolint:gosec // it was packed here; the reader is gone
	return nil
}

// sendJSON writes a value for a program. A client that polls gets only a few bytes if nothing changed.
func (w *web) sendJSON(rw http.ResponseWriter, r *http.Request, v any) {
	p, err := pack(v)
	if err != nil {
		w.o.Logger.Error("encoding of answer failed", "error", err)
		http.Error(rw, "weir could not encode the answer; see weir's log", http.StatusInternalServerError)
		return
	}
	tag := `W/"` + hex.EncodeToString(p.sum.Sum(nil)[:12]) + `"`
	h := rw.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	if r.Header.Get("If-None-Match") == tag {
		h.Add("Vary", "Accept-Encoding")
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "application/json")
	if err := p.send(rw, r); err != nil {
		w.o.Logger.Error("an answer could not be unpacked", "error", err) // nothing was sent yet
	}
}
