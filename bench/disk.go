package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// life enqueues n tasks and then runs them. concurrency says how many tasks a
// transaction adds, and also how many tasks run at the same time. life returns
// the queue, still open, and the number of bytes that this process has written
// to the disk since it opened the queue.
func (s system) life(ctx context.Context, e *env, n, concurrency int) (q *queue, written int64, err error) {
	l := newLedger(n)
	q, err = s.open(ctx, e, concurrency, func(p payload) { l.note(p.N) })
	if err != nil {
		return nil, 0, err
	}

	before, err := diskBytes()
	if err != nil {
		return q, 0, err
	}

	for from := 0; from < n; from += concurrency {
		if err := q.addMany(ctx, payloads(from, min(concurrency, n-from))); err != nil {
			return q, 0, err
		}
	}

	if err := q.start(ctx); err != nil {
		return q, 0, err
	}
	if err := l.wait(ctx); err != nil {
		return q, 0, err
	}
	if err := q.stop(ctx); err != nil {
		return q, 0, err
	}

	after, err := diskBytes()
	return q, after - before, errors.Join(err, l.check(), q.hasCounts(ctx, 0, n))
}

// written measures how many bytes this process writes to the disk for each
// task, from its enqueue to its end.
func (s system) written(n, concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, bytes, err := s.life(ctx, e, n, concurrency)
		if q != nil {
			err = errors.Join(err, q.close())
		}
		if err == nil && bytes == 0 {
			err = fmt.Errorf("the kernel counts no writes to the filesystem of %s; name another one with -dir", e.dir)
		}
		return float64(bytes) / float64(n), err
	}
}

// kept measures how many bytes a completed task without output adds to the
// database file. This includes its entries in all indexes and tables.
func (s system) kept(n int, name string) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := s.open(ctx, e, 1, func(payload) {})
		if err != nil {
			return 0, err
		}
		if err := q.close(); err != nil {
			return 0, err
		}

		empty, err := os.Stat(e.path(name))
		if err != nil {
			return 0, err
		}

		q, _, err = s.life(ctx, e, n, 100)
		if q != nil {
			err = errors.Join(err, q.close())
		}
		if err != nil {
			return 0, err
		}

		full, err := os.Stat(e.path(name))
		if err != nil {
			return 0, err
		}

		return float64(full.Size()-empty.Size()) / float64(n), nil
	}
}

// diskBytes returns how many bytes this process has written to a disk so far,
// as Linux counts them. Linux counts whole pages. It counts a page once for all
// writes between two syncs.
func diskBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}

	return 0, errors.New("/proc/self/io has no write_bytes")
}
