package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// BenchmarkPages prints the times of the pages in a database with a million
// pending and a million finished tasks. A tenth of the finished tasks failed.
// The first page in the list has a drawing of 200 tasks and their dependencies.
func BenchmarkPages(b *testing.B) {
	const finished = 1_000_000
	r := open(b)
	many(b, r, 1_000_000, func(int) jobs.Spec { return jobs.Command(command.Shell("true"), jobs.Queue("media")) })
	now := time.Now().UnixMilli()
	write(b, r, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO tasks (generation_id, state, job, args, queue, priority, attempt, max_attempts, max_losses, worker,
			created_at, run_at, updated_at, started_at, finished_at, outcome)
		SELECT 3, CASE WHEN i % 10 = 0 THEN 'failed' ELSE 'completed' END, 'command', '["backup.sh","--full"]',
			CASE i % 3 WHEN 0 THEN 'default' WHEN 1 THEN 'mail' ELSE 'media' END, 5, 1, 1, 3, 1,
			?2 - (?1 - i) * 600 - 9, ?2 - (?1 - i) * 600 - 5, ?2 - (?1 - i) * 600, ?2 - (?1 - i) * 600 - 3, ?2 - (?1 - i) * 600,
			CASE WHEN i % 10 = 0 THEN '{"reason":"exit","error":"exit status 1","exit_code":1}' END
		FROM n`, finished, now)
	_, last := fan(b, r, 300)
	s := serve(b, r, web.ServerOptions{})
	for _, path := range []string{fmt.Sprintf("/tasks/%d", last), "/", "/?range=7d", "/tasks", "/tasks?q=state:failed",
		"/tasks?q=state:failed&sort=cause",
		"/tasks?q=queue:media", "/tasks?q=state:completed%20since:1d", "/tasks?q=state:failed%20since:1d", "/tasks?q=state:pending",
		"/tasks?q=state:pending%20queue:media", "/tasks?q=worker:web1:811", "/tasks?q=lane:none", "/tasks?q=nothing-is-called-so",
		"/tasks?q=state:failed%20nothing-is-called-so", "/tasks/5", "/tasks/900000", "/schedules", "/jobs?job=command", "/jobs?job=none",
		"/workers?span=6h", "/metrics"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				s.page(path)
			}
			if path != "/metrics" {
				_, sent := s.wire(path)
				b.ReportMetric(float64(sent), "wire-B")
			}
		})
	}
	_, wal := db.Of(r).Size()
	b.Logf("the write-ahead log has %d bytes", wal)
}

// BenchmarkOpenTabs measures the speed of a worker while 0 or 100 pages are
// open. The tasks do nothing. Each page loads its content after every
// notification.
func BenchmarkOpenTabs(b *testing.B) {
	for _, tabs := range []int{0, 100} {
		b.Run(fmt.Sprint(tabs), func(b *testing.B) {
			r := open(b)
			noop := jobs.Define[int]("noop")
			r.Register(noop.Handler(func(context.Context, int) error { return nil }))
			s := serve(b, r, web.ServerOptions{})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range tabs {
				go tab(ctx, s)
			}
			specs := func(yield func(jobs.Spec) bool) {
				for i := range b.N {
					if !yield(noop.With(i)) {
						return
					}
				}
			}
			if _, err := r.EnqueueSeq(context.Background(), specs); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			runnerkit.Drain(b, r, web1)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// tab makes the same requests as a browser with the overview open.
func tab(ctx context.Context, s *site) {
	res, err := s.client.Do(s.request("GET", "/events", nil).WithContext(ctx))
	if err != nil {
		return
	}
	defer res.Body.Close()
	buffer := make([]byte, 256)
	for ctx.Err() == nil {
		if _, err := res.Body.Read(buffer); err != nil {
			return
		}
		req := s.request("GET", "/", nil).WithContext(ctx)
		req.Header.Set("Accept", "text/x-fragment")
		if page, err := s.client.Do(req); err == nil {
			_ = page.Body.Close()
		}
	}
}
