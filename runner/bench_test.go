package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// The benchmarks print the ratio of their speed to that of a bare loop. The
// bare loop is one goroutine that executes prepared statements on the same
// tables, without this package. It is the fastest possible program with these
// tables and this driver.

var noop = jobs.Define[string]("noop", jobs.MaxAttempts(1))

var payload = `{"to":"someone@example.com","subject":"a payload of about one hundred bytes as tasks often have","n":1}`

// bench opens a new database with n pending tasks that do nothing.
func bench(b *testing.B, sync runner.Sync, n int) *runner.Runner {
	b.Helper()
	r, err := runner.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), runner.Options{Sync: sync})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	if _, err := r.EnqueueSeq(b.Context(), repeat(noop.With(payload), n)); err != nil {
		b.Fatal(err)
	}
	return r
}

func repeat(spec jobs.Spec, n int) iter.Seq[jobs.Spec] {
	return func(yield func(jobs.Spec) bool) {
		for range n {
			if !yield(spec) {
				return
			}
		}
	}
}

// bareDB is a connection for the bare loop, which only executes prepared
// statements. The benchmarks compare the Runner with this loop.
type bareDB struct {
	b     *testing.B
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func openBare(b *testing.B, path, level string) *bareDB {
	b.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=synchronous("+level+")&_pragma=cache_size(-8000)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	conn, err := pool.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &bareDB{b, conn, map[string]*sql.Stmt{}}
}

func (d *bareDB) stmt(text string) *sql.Stmt {
	if d.stmts[text] == nil {
		stmt, err := d.conn.PrepareContext(context.Background(), text)
		if err != nil {
			d.b.Fatal(err)
		}
		d.b.Cleanup(func() { stmt.Close() }) // SQLite closes the file only when all its statements are closed
		d.stmts[text] = stmt
	}
	return d.stmts[text]
}

func (d *bareDB) exec(text string, args ...any) {
	if _, err := d.stmt(text).Exec(args...); err != nil {
		d.b.Fatal(err)
	}
}

const (
	bareClaim = `WITH next AS MATERIALIZED (SELECT id, generation_id, priority FROM tasks
	WHERE state = 'pending' AND queue = ? AND job = ? ORDER BY priority DESC, id LIMIT ?)
UPDATE tasks SET state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1, worker = ?,
	lease_expires_at = ?, started_at = ?, updated_at = ?
FROM next WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id RETURNING tasks.id, tasks.generation_id, tasks.args`
	bareFinish = `UPDATE tasks SET state = 'completed', generation_id = generation_id + 1, lease_expires_at = NULL, finished_at = ?,
	updated_at = ?
WHERE id = ? AND generation_id = ? AND worker = ? AND state = 'running'`
	bareInsert = `INSERT INTO tasks (generation_id, job, args, queue, state, priority, run_at, max_attempts, max_losses, created_at,
	updated_at) VALUES (1, ?, ?, 'default', 'pending', 5, ?, 1, 3, ?, ?)`
)

// drain claims and finishes n tasks, k tasks at a time. Each transaction
// finishes k tasks and claims the next k.
func (d *bareDB) drain(n, k int) {
	type claim struct{ id, generation int64 }
	const worker = 1
	var batch []claim
	for done := 0; done < n; done += len(batch) {
		d.exec("BEGIN IMMEDIATE")
		ms := time.Now().UnixMilli()
		for _, c := range batch {
			d.exec(bareFinish, ms, ms, c.id, c.generation, worker)
		}
		batch = batch[:0]
		rows, err := d.stmt(bareClaim).Query("default", "noop", k, worker, ms+60000, ms, ms)
		if err != nil {
			d.b.Fatal(err)
		}
		for rows.Next() {
			var c claim
			var args string
			if err := rows.Scan(&c.id, &c.generation, &args); err != nil {
				d.b.Fatal(err)
			}
			batch = append(batch, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			d.b.Fatal(err)
		}
		d.exec("COMMIT")
		if len(batch) == 0 {
			d.b.Fatalf("got no task to claim after %d of %d tasks", done, n)
		}
	}
}

var levels = []struct {
	name, pragma string
	sync         runner.Sync
}{{"normal", "NORMAL", runner.SyncNormal}, {"durable", "FULL", runner.SyncFull}}

// BenchmarkDrain measures tasks whose functions do nothing, from the claim to
// the end.
func BenchmarkDrain(b *testing.B) {
	for _, level := range levels {
		for _, concurrency := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/c=%d", level.name, concurrency), func(b *testing.B) {
				n := b.N
				b.StopTimer()
				bare := bench(b, level.sync, n)
				d := openBare(b, admin.Path(bare), level.pragma)
				began := time.Now()
				d.drain(n, concurrency)
				limit := time.Since(began)

				r := bench(b, level.sync, n)
				var ran atomic.Int64
				r.Register(noop.Handler(func(context.Context, string) error { ran.Add(1); return nil }))
				b.StartTimer()
				began = time.Now()
				if err := r.Work(b.Context(), runner.WorkOptions{Concurrency: concurrency, UntilEmpty: true}); err != nil {
					b.Fatal(err)
				}
				took := time.Since(began)
				b.StopTimer()
				testkit.Equal(b, "executed tasks", ran.Load(), int64(n))
				report(b, n, took, limit)
			})
		}
	}
}

func report(b *testing.B, n int, took, limit time.Duration) {
	b.ReportMetric(float64(n)/took.Seconds(), "tasks/s")
	b.ReportMetric(float64(n)/limit.Seconds(), "bare/s")
	b.ReportMetric(limit.Seconds()/took.Seconds(), "ratio")
}

// BenchmarkEnqueue adds tasks one by one from several goroutines. Each call
// waits for its commit.
func BenchmarkEnqueue(b *testing.B) {
	for _, level := range levels {
		for _, callers := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%s/callers=%d", level.name, callers), func(b *testing.B) {
				n := b.N
				b.StopTimer()
				d := openBare(b, admin.Path(bench(b, level.sync, 0)), level.pragma)
				began := time.Now()
				for range n {
					ms := time.Now().UnixMilli()
					d.exec(bareInsert, "noop", payload, ms, ms, ms)
				}
				limit := time.Since(began)

				r := bench(b, level.sync, 0)
				var next atomic.Int64
				var group sync.WaitGroup
				b.StartTimer()
				began = time.Now()
				for range callers {
					group.Go(func() {
						for next.Add(1) <= int64(n) {
							if _, err := r.Enqueue(b.Context(), noop.With(payload)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				took := time.Since(began)
				b.StopTimer()
				report(b, n, took, limit)
			})
		}
	}
}

// BenchmarkEnqueueSeq adds b.N tasks in one transaction.
func BenchmarkEnqueueSeq(b *testing.B) {
	n := b.N
	b.StopTimer()
	d := openBare(b, admin.Path(bench(b, runner.SyncFull, 0)), "FULL")
	began := time.Now()
	d.exec("BEGIN IMMEDIATE")
	for range n {
		ms := time.Now().UnixMilli()
		d.exec(bareInsert, "noop", payload, ms, ms, ms)
	}
	d.exec("COMMIT")
	limit := time.Since(began)

	r := bench(b, runner.SyncFull, 0)
	b.StartTimer()
	began = time.Now()
	if _, err := r.EnqueueSeq(b.Context(), repeat(noop.With(payload), n)); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	b.StopTimer()
	report(b, n, took, limit)
}

func percentiles(b *testing.B, times []time.Duration, what string) {
	slices.Sort(times)
	ms := func(p int) float64 { return times[min(len(times)*p/100, len(times)-1)].Seconds() * 1000 }
	b.ReportMetric(ms(50), what+"p50_ms")
	b.ReportMetric(ms(99), what+"p99_ms")
	b.ReportMetric(ms(100), what+"max_ms")
}
