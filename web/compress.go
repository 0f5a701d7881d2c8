package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressor compresses a response with gzip. It does not compress a download, because the Content-Length and the byte ranges of the
// response refer to the file. Compression can reveal a secret by the length of a page, but no page contains a secret.
type compressor struct {
	http.ResponseWriter
	zip    *gzip.Writer // writer of the compressed response; nil if the response is not compressed
	header bool         // whether the header has been written
}

// compressors are idle writers that later responses use again, because each writer has 800 KB of tables.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, 5)
	if err != nil {
		panic(err) // the level is valid, so there is no error
	}
	return w
}}

// compressed lists the media types that the server compresses. A stream of events is not compressed, because an event has only a few bytes.
var compressed = []string{"text/html", "text/css", "text/javascript", "text/csv", "application/json", "image/svg+xml"}

// compress returns a writer that compresses the response if the client accepts gzip. The caller must call close after the response.
func compress(w http.ResponseWriter, req *http.Request) (c *compressor, accepted bool) {
	for part := range strings.SplitSeq(req.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && !refused(quality) {
			return &compressor{ResponseWriter: w}, req.Method != http.MethodHead && req.Header.Get("Range") == ""
		}
	}
	return nil, false
}

// refused reports whether a client gave an encoding the quality zero: q=0,
// q=0.0 and so on.
func refused(quality string) bool {
	_, weight, found := strings.Cut(quality, "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
	return found && err == nil && q == 0
}

func (c *compressor) WriteHeader(status int) {
	c.start(status)
	c.ResponseWriter.WriteHeader(status)
}

// start decides whether the response is compressed.
func (c *compressor) start(status int) {
	if c.header {
		return
	}
	c.header = true
	header := c.Header()
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	isText := false
	for _, text := range compressed {
		isText = isText || kind == text
	}
	if !isText || header.Get("Content-Disposition") != "" || status == http.StatusNoContent || status == http.StatusNotModified {
		return
	}
	header.Set("Content-Encoding", "gzip")
	header.Add("Vary", "Accept-Encoding")
	header.Del("Content-Length")
	header.Del("Accept-Ranges")
	c.zip = compressors.Get().(*gzip.Writer)
	c.zip.Reset(c.ResponseWriter)
}

func (c *compressor) Write(text []byte) (int, error) {
	if !c.header {
		c.WriteHeader(http.StatusOK)
	}
	if c.zip == nil {
		return c.ResponseWriter.Write(text)
	}
	return c.zip.Write(text)
}

// FlushError sends all text that has been written. http.ResponseController calls it.
func (c *compressor) FlushError() error {
	if !c.header {
		c.WriteHeader(http.StatusOK)
	}
	if c.zip != nil {
		if err := c.zip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// close ends the compressed response.
func (c *compressor) close() {
	if c.zip != nil {
		_ = c.zip.Close() // an error means that the client is gone
		compressors.Put(c.zip)
		c.zip = nil
	}
}
