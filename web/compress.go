package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// compressed lists the media types that the server compresses with gzip. (The
// libraries for that add 0.15 ms to the start of every command of runner.)
// Compression can reveal a secret by the length of a page, but no page contains
// one. A stream of events stays as it is: each event has only a few bytes.
var compressed = []string{"text/html", "text/css", "text/javascript", "text/csv", "application/json", "image/svg+xml"}

// compressors are idle writers, because each has 800 KB of tables.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// compressor compresses the body of a response if it is a text.
type compressor struct {
	http.ResponseWriter
	zip   *gzip.Writer // nil if the body is sent as it is
	begun bool         // whether the header has been written
}

// compress compresses the texts that a handler sends to clients that accept it.
// The Content-Length and the byte ranges of a download refer to the file.
func compress(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		accepted := strings.ReplaceAll(req.Header.Get("Accept-Encoding"), " ", "")
		isWanted := strings.Contains(accepted, "gzip") && !strings.Contains(accepted, "gzip;q=0")
		if !isWanted || req.Method == http.MethodHead || req.Header.Get("Range") != "" {
			h.ServeHTTP(w, req)
			return
		}

		c := &compressor{ResponseWriter: w}
		h.ServeHTTP(c, req)
		if c.zip != nil {
			_ = c.zip.Close() // an error means that the client is gone
			compressors.Put(c.zip)
		}
	})
}

func (c *compressor) WriteHeader(status int) {
	header := c.Header()
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if !c.begun && status == http.StatusOK && slices.Contains(compressed, kind) && header.Get("Content-Disposition") == "" {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		header.Del("Content-Length")
		header.Del("Accept-Ranges")
		c.zip = compressors.Get().(*gzip.Writer)
		c.zip.Reset(c.ResponseWriter)
	}
	c.begun = true
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressor) Write(text []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	if c.zip == nil {
		return c.ResponseWriter.Write(text)
	}
	return c.zip.Write(text)
}

// FlushError sends all text that has been written. http.ResponseController calls it.
func (c *compressor) FlushError() error {
	if c.zip != nil {
		if err := c.zip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }
