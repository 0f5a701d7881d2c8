package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	_ "modernc.org/sqlite"

	"example.com/runner/runner"
)

// The bare loop shows the highest throughput that runner could reach. It runs
// prepared statements on one connection to runner's own tables, in one
// goroutine, and uses no other part of runner.

const (
	bareClaim = `WITH next AS MATERIALIZED (SELECT id, generation_id FROM tasks
	WHERE state = 'pending' AND queue = 'default' AND job = 'noop' ORDER BY priority DESC, id LIMIT ?)
UPDATE tasks SET state = 'running', generation_id = tasks.generation_id + 1, attempt = tasks.attempt + 1, max_attempts = 1, worker = ?,
	lease_expires_at = ?, started_at = ?, updated_at = ? FROM next
WHERE tasks.id = next.id AND tasks.generation_id = next.generation_id RETURNING tasks.id, tasks.generation_id, tasks.args`
	bareFinish = `UPDATE tasks SET state = 'completed', generation_id = generation_id + 1, lease_expires_at = NULL,
	finished_at = ?, updated_at = ?
WHERE id = ? AND generation_id = ? AND worker = ? AND state = 'running'`
	bareInsert = `INSERT INTO tasks (generation_id, job, args, queue, state, priority, run_at, max_attempts, max_losses, created_at,
	updated_at)
VALUES (1, 'noop', ?, 'default', 'pending', 5, ?, 1, 3, ?, ?)`
	bareWorker = 1 // id of an invented worker; the table of workers has no row for it
)

// bare is a connection to the database with its prepared statements.
type bare struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func openBare(ctx context.Context, path, level string) (*bare, func(), error) {
	pool, err := sql.Open("sqlite", dsn(path, level))
	if err != nil {
		return nil, nil, err
	}

	conn, err := pool.Conn(ctx)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}

	return &bare{conn, map[string]*sql.Stmt{}}, func() { conn.Close(); pool.Close() }, nil
}

// dsn returns the data source name of an SQLite file. All systems in Go open
// their files with the settings in this name.
func dsn(path, level string) string {
	return "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(" + level + ")"
}

func (b *bare) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if b.stmts[text] == nil {
		stmt, err := b.conn.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		b.stmts[text] = stmt
	}
	return b.stmts[text], nil
}

func (b *bare) exec(ctx context.Context, text string, args ...any) error {
	stmt, err := b.stmt(ctx, text)
	if err == nil {
		_, err = stmt.ExecContext(ctx, args...)
	}
	return err
}

type claimed struct{ id, generation int64 }

// turn completes the tasks in batch and claims up to k new tasks. It does both
// in one transaction.
func (b *bare) turn(ctx context.Context, batch []claimed, k int) (_ []claimed, err error) {
	if err := b.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}

	ms := time.Now().UnixMilli()
	for _, c := range batch {
		if err := b.exec(ctx, bareFinish, ms, ms, c.id, c.generation, bareWorker); err != nil {
			return nil, err
		}
	}

	stmt, err := b.stmt(ctx, bareClaim)
	if err != nil {
		return nil, err
	}

	rows, err := stmt.QueryContext(ctx, k, bareWorker, ms+60000, ms, ms)
	if err != nil {
		return nil, err
	}

	batch = batch[:0]
	for rows.Next() {
		var c claimed
		var args string
		if err := rows.Scan(&c.id, &c.generation, &args); err != nil {
			return nil, err
		}
		batch = append(batch, c)
	}

	if err := rows.Close(); err != nil {
		return nil, err
	}

	return batch, b.exec(ctx, "COMMIT")
}

// drain claims and completes all pending tasks. A transaction claims up to k
// tasks and completes the tasks of the previous transaction.
func (b *bare) drain(ctx context.Context, k int) error {
	batch, err := b.turn(ctx, nil, k)
	for len(batch) > 0 && err == nil {
		batch, err = b.turn(ctx, batch, k)
	}
	return err
}

// insert adds n pending rows. A transaction adds perCommit rows.
func (b *bare) insert(ctx context.Context, n, perCommit int) error {
	for i := range n {
		if i%perCommit == 0 {
			if err := b.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
				return err
			}
		}

		ms := time.Now().UnixMilli()
		if err := b.exec(ctx, bareInsert, newPayload(i).json(), ms, ms, ms); err != nil {
			return err
		}
		if (i+1)%perCommit == 0 || i+1 == n {
			if err := b.exec(ctx, "COMMIT"); err != nil {
				return err
			}
		}
	}

	return nil
}

func bareDrain(level string, n, k int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := ours("", runner.SyncNormal).open(ctx, e, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()

		if err := q.addMany(ctx, payloads(0, n)); err != nil {
			return 0, err
		}

		b, done, err := openBare(ctx, e.path("runner.db"), level)
		if err != nil {
			return 0, err
		}
		defer done()

		began := time.Now()
		if err := b.drain(ctx, k); err != nil {
			return 0, err
		}

		took := time.Since(began)
		return perSecond(n, took), errors.Join(q.hasCounts(ctx, 0, n), q.inOrder(ctx))
	}
}

// bareEnqueue measures how fast the bare loop inserts n rows, in rows per
// second. A transaction adds perCommit rows.
func bareEnqueue(level string, n, perCommit int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := ours("", runner.SyncNormal).open(ctx, e, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()

		b, done, err := openBare(ctx, e.path("runner.db"), level)
		if err != nil {
			return 0, err
		}
		defer done()

		began := time.Now()
		if err := b.insert(ctx, n, perCommit); err != nil {
			return 0, err
		}

		took := time.Since(began)
		return perSecond(n, took), q.hasCounts(ctx, n, 0)
	}
}
