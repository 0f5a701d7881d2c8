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

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// wire sends a GET request that accepts gzip. It returns the uncompressed text
// and the number of bytes of the compressed body.
func (s *site) wire(path string) (text string, sent int) {
	s.t.Helper()
	req := s.request(http.MethodGet, path, nil)
	req.Header.Set("Accept-Encoding", "gzip") // with this header set, the client does not decompress the body itself
	_, body, answer := s.do(req)
	testkit.Equal(s.t, path+": Content-Encoding", answer.Get("Content-Encoding"), "gzip")
	r, err := gzip.NewReader(strings.NewReader(body))
	testkit.NoError(s.t, err)
	plain, err := io.ReadAll(r)
	testkit.NoError(s.t, err)
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
	for path, want := range map[string]string{"/api/v1/tasks": `"tasks":[`, "/api/v1/tasks?format=csv": "id,state",
		"/api/v1/tasks/1": `"id":1`, "/metrics": "# HELP"} {
		text, _ := s.wire(path)
		testkit.Contains(t, text, want)
	}
	for accepted, want := range map[string]string{"identity, gzip;q=0": "", "gzip;q=0.0": "",
		"gzip;q=0.1": "", "br, gzip;q=1": "gzip"} {
		req := s.request(http.MethodGet, "/tasks", nil)
		req.Header.Set("Accept-Encoding", accepted)
		_, _, header := s.do(req)
		testkit.Equal(t, "Content-Encoding for "+accepted, header.Get("Content-Encoding"), want)
	}
}

// TestTenThousandQueues bounds what each page reads and sends, because with
// thousands of queues the pages and the metrics once took longer than the time
// limit of a request.
func TestTenThousandQueues(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1", jobs.Queue("q0"))
	runnerkit.Drain(t, r, web1)
	write(t, r, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
		INSERT INTO tasks (generation_id, state, job, args, queue, priority, max_attempts, max_losses, created_at, run_at, updated_at)
		SELECT 1, 'pending', 'command', '["true"]', 'q' || i, i % 9, 1, 3, 1000, 1000, 1000 FROM n`)
	shell(t, r, "true", jobs.Queue("q1"), jobs.Metadata(map[string]string{"customer": "acme"}))
	s := serve(t, r, webOptions)

	for path, wants := range map[string][]string{
		"/":                     {"<b>10,000</b>", "100 of 10,000 queues", `<tr id="q-q0">`},
		"/?queue=99&range=1h":   {`<tr id="q-q1099">`, "100 of 280 queues", `<input type="hidden" name="range" value="1h">`},
		"/?queue=no-such":       {"No queue has such a name."},
		"/?queue=q9999":         {`<tr id="q-q9999">`},
		"/tasks?q=queue:q9876":  {`title="q9876"`},
		"/tasks?q=state:failed": {`id="t1"`},
		"/tasks?q=queue:q98765": {"No task matches."},
	} {
		text, sent := s.wire(path)
		testkit.Contains(t, text, wants...)
		if sent > 30_000 {
			t.Errorf("%s: got %d bytes, want at most 30000", path, sent)
		}
	}

	testkit.Contains(t, s.page("/api/v1/tasks?q=queue:q"), `"tasks":[]`)
	testkit.Contains(t, s.page("/tasks/10001"), `<a href="/tasks?q=meta%3Acustomer%3Dacme">customer=acme</a>`)

	families := scrape(t, s)
	testkit.Equal(t, "pending tasks of the last queue", value(families, "runner_tasks", "queue=q9999", "state=pending"), 1.0)
	testkit.Equal(t, "attempts", value(families, "runner_attempts_total", "queue=q0", "job=command", "result=exit"), 1.0)
}

// BenchmarkOpenOverview prints the bytes that an open overview of a busy
// database receives in a second.
func BenchmarkOpenOverview(b *testing.B) {
	r := open(b)
	sampleDatabase(b, r)
	noop := jobs.Define[int]("noop")
	r.Register(noop.Handler(func(context.Context, int) error { time.Sleep(5 * time.Millisecond); return nil }))
	many(b, r, 100_000, func(i int) jobs.Spec { return noop.With(i, jobs.Queue(fmt.Sprint("queue", i%8))) })
	b.Cleanup(runnerkit.Work(b, r, web1))
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
