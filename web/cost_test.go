package web_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
)

// wire sends a GET request that accepts gzip. It returns the uncompressed text and the number of bytes of the compressed body.
func (s *site) wire(path string, header ...string) (text string, sent int) {
	s.t.Helper()
	req := s.request(http.MethodGet, path, nil)
	req.Header.Set("Accept-Encoding", "gzip") // with this header set, the client does not decompress the body itself
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	_, body, answer := s.do(req)
	testkit.Equal(s.t, path+": Content-Encoding", answer.Get("Content-Encoding"), "gzip")
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(plain), len(body)
}

func TestPagesAreCompressed(t *testing.T) {
	r := open(t)
	pages := sampleDatabase(t, r)
	s := serve(t, r, webOptions)
	for _, path := range []string{"/?range=24h", "/tasks", "/tasks?q=state:failed", "/tasks?q=state:failed&sort=cause", pages["task"],
		"/tasks?q=state:pending%20nothing-is-called-so", "/schedules", "/workers?span=6h", "/jobs?label=webhook", "/jobs?job=email.send"} {
		text, sent := s.wire(path)
		testkit.Contains(t, text, "<main", "</html>")
		if sent > 30_000 {
			t.Errorf("%s: got %d bytes, want at most 30000", path, sent)
		}
		t.Logf("%s: %d bytes instead of %d", path, sent, len(text))
	}
	for accepted, want := range map[string]string{"identity, gzip;q=0": "", "gzip;q=0.0": "", "gzip; q = 0.000, br": "",
		"gzip;q=0.1": "gzip"} {
		req := s.request(http.MethodGet, "/tasks", nil)
		req.Header.Set("Accept-Encoding", accepted)
		_, _, header := s.do(req)
		testkit.Equal(t, "Content-Encoding for "+accepted, header.Get("Content-Encoding"), want)
	}
}

func TestAFragmentHasOnlyTheChangedRegions(t *testing.T) {
	r := open(t)
	shell(t, r, "true")
	s := serve(t, r, webOptions)
	loads := 0
	load := func(have string) string {
		t.Helper()
		loads++
		text, _ := s.wire(fmt.Sprint("/tasks?load=", loads), "Accept", "text/x-fragment", "Have", have)
		return text
	}
	first := load("")
	testkit.Contains(t, first, `id="t1"`, `<div id="rows" data-live>`)
	have := hashesOf(first)
	if err := r.Pause(t.Context(), "", "media"); err != nil {
		t.Fatal(err)
	}
	second := load(have)
	testkit.Contains(t, second, `<nav id="tabs" data-live data-same></nav>`)
	shell(t, r, "true")
	testkit.Contains(t, load(have), `id="t2"`, `id="rows"`)
}

// TestAnOpenOverviewOfABusyDatabaseLoadsFewBytes checks the bytes that an overview loads after a change. The server reports changes at most
// once a second, so this is also the largest number of bytes per second.
func TestAnOpenOverviewOfABusyDatabaseLoadsFewBytes(t *testing.T) {
	r := open(t)
	sampleDatabase(t, r)
	noop := jobs.Define[int]("noop")
	r.Register(noop.Handler(func(context.Context, int) error { return nil }))
	s := serve(t, r, webOptions)
	have := ""
	for second := range 4 {
		for i := range 150 {
			if _, err := r.Enqueue(t.Context(), noop.With(i, jobs.Queue(fmt.Sprint("queue", i%8)))); err != nil {
				t.Fatal(err)
			}
		}
		runnerkit.Drain(t, r)
		text, sent := s.wire(fmt.Sprint("/?range=1h&load=", second), "Accept", "text/x-fragment", "Have", have)
		if second > 0 && sent > 5000 {
			t.Errorf("second %d: got %d bytes, want at most 5000", second, sent)
		}
		t.Logf("second %d: %d bytes", second, sent)
		have = hashesOf(text)
	}
}

// hashesOf returns the hashes of the regions of a fragment, as the script of a page sends them in the header Have.
func hashesOf(fragment string) string {
	_, hashes, _ := strings.Cut(fragment, `<meta name="have" content="`)
	hashes, _, _ = strings.Cut(hashes, `"`)
	var have []string
	for pair := range strings.FieldsSeq(hashes) {
		_, hash, _ := strings.Cut(pair, "=")
		have = append(have, hash)
	}
	return strings.Join(have, " ")
}

// BenchmarkOpenOverview prints the bytes that an open overview of a busy database receives in a second.
func BenchmarkOpenOverview(b *testing.B) {
	r := open(b)
	sampleDatabase(b, r)
	noop := jobs.Define[int]("noop")
	r.Register(noop.Handler(func(context.Context, int) error { time.Sleep(5 * time.Millisecond); return nil }))
	specs := func(yield func(jobs.Spec) bool) {
		for i := range 100_000 {
			if !yield(noop.With(i, jobs.Queue(fmt.Sprint("queue", i%8)))) {
				return
			}
		}
	}
	if _, err := r.EnqueueAll(b.Context(), specs); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(runnerkit.Work(b, r))
	page := browse(b, serve(b, r, webOptions))
	page.open("/?range=1h")
	time.Sleep(5 * time.Second)
	received := `performance.getEntriesByType("resource").reduce((sum, e) => sum + e.transferSize, 0)`
	before, n := eval[int](page, received), len(page.seen())
	const seconds = 20
	time.Sleep(seconds * time.Second)
	b.ReportMetric(float64(eval[int](page, received)-before)/seconds, "B/s")
	b.ReportMetric(float64(len(page.seen())-n)/seconds, "requests/s")
}
