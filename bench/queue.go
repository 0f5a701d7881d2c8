package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// queue is an open queue of one of the compared systems, on a new file. Its
// functions are the operations that the workloads need.
type queue struct {
	add       func(context.Context, payload) error   // adds a task and returns after the commit
	addMany   func(context.Context, []payload) error // adds all tasks in one transaction
	start     func(context.Context) error            // starts the workers
	stop      func(context.Context) error            // stops the workers after they have stored the results of all tasks that have run
	count     func(context.Context) (waiting, completed int, err error)
	misplaced func(context.Context) (int, error) // counts tasks that started before an older task; nil if the system promises no order
	close     func() error
}

// system is a job system. open is a function that opens a queue. Each task of
// this queue calls handle.
type system struct {
	name string
	open func(ctx context.Context, e *env, concurrency int, handle func(payload)) (*queue, error)
}

// run runs the tasks of a ledger and returns how long they took. The time
// includes the last writes of their results.
func (q *queue) run(ctx context.Context, l *ledger) (time.Duration, error) {
	began := time.Now()
	if err := q.start(ctx); err != nil {
		return 0, err
	}
	if err := l.wait(ctx); err != nil {
		return 0, err
	}
	if err := q.stop(ctx); err != nil {
		return 0, err
	}

	return time.Since(began), l.check()
}

// drain measures how fast workers run n tasks that are in the file already, in
// tasks per second. The clock stops when the file says that all tasks are
// completed.
func (s system) drain(n, concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		l := newLedger(n)
		q, err := s.open(ctx, e, concurrency, func(p payload) { l.note(p.N) })
		if err != nil {
			return 0, err
		}
		defer q.close()

		for from := 0; from < n; from += 1000 {
			if err := q.addMany(ctx, payloads(from, min(1000, n-from))); err != nil {
				return 0, err
			}
		}

		took, err := q.run(ctx, l)
		if err != nil {
			return 0, err
		}

		return perSecond(n, took), errors.Join(q.hasCounts(ctx, 0, n), q.inOrder(ctx))
	}
}

// enqueue measures how fast goroutines add n tasks one by one, in tasks per
// second. Each goroutine waits for its commit.
func (s system) enqueue(n, callers int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n) / callers * callers
		q, err := s.open(ctx, e, 1, func(payload) {})
		if err != nil {
			return 0, err
		}
		defer q.close()

		began := time.Now()
		if err := callersDo(n, callers, func(i int) error { return q.add(ctx, newPayload(i)) }); err != nil {
			return 0, err
		}

		took := time.Since(began)
		return perSecond(n, took), q.hasCounts(ctx, n, 0)
	}
}

// batch measures how fast a system adds n tasks in transactions of 1000, in
// tasks per second.
func (s system) batch(n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := s.open(ctx, e, 1, func(payload) {})
		if err != nil {
			return 0, err
		}
		defer q.close()

		began := time.Now()
		for from := 0; from < n; from += 1000 {
			if err := q.addMany(ctx, payloads(from, min(1000, n-from))); err != nil {
				return 0, err
			}
		}

		took := time.Since(began)
		return perSecond(n, took), q.hasCounts(ctx, n, 0)
	}
}

// mixed measures the system under two loads at the same time: goroutines
// enqueue tasks while workers run them. The figure is in tasks per second.
// concurrency is the number of these goroutines, and also the number of tasks
// that run at the same time.
func (s system) mixed(n, concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n) / concurrency * concurrency
		l := newLedger(n)
		q, err := s.open(ctx, e, concurrency, func(p payload) { l.note(p.N) })
		if err != nil {
			return 0, err
		}
		defer q.close()

		if err := q.start(ctx); err != nil {
			return 0, err
		}

		began := time.Now()
		if err := callersDo(n, concurrency, func(i int) error { return q.add(ctx, newPayload(i)) }); err != nil {
			return 0, err
		}
		if err := l.wait(ctx); err != nil {
			return 0, err
		}
		if err := q.stop(ctx); err != nil {
			return 0, err
		}

		took := time.Since(began)
		if err := l.check(); err != nil {
			return 0, err
		}

		return perSecond(n, took), q.hasCounts(ctx, 0, n)
	}
}

// loaded measures the time from an enqueue call to the start of the task. Four
// goroutines enqueue n tasks in total, each of them at most 250 per second, so
// the queue is never idle and never grows. The result is percentile p, in
// milliseconds.
func (s system) loaded(n int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		const callers = 4
		n := e.size(n) / callers * callers
		took, began := make([]time.Duration, n), make([]time.Time, n)
		l := newLedger(n)
		q, err := s.open(ctx, e, 10, func(p payload) { took[p.N] = time.Since(began[p.N]); l.note(p.N) })
		if err != nil {
			return 0, err
		}
		defer q.close()

		if err := q.start(ctx); err != nil {
			return 0, err
		}
		if err := callersDo(n, callers, func(i int) error {
			time.Sleep(4 * time.Millisecond)
			began[i] = time.Now()
			return q.add(ctx, newPayload(i))
		}); err != nil {
			return 0, err
		}
		if err := l.wait(ctx); err != nil {
			return 0, err
		}
		if err := q.stop(ctx); err != nil {
			return 0, err
		}
		if err := l.check(); err != nil {
			return 0, err
		}

		slices.Sort(took)
		return ms(percentile(took, p)), q.hasCounts(ctx, 0, n)
	}
}

// latency measures the time from an enqueue call to the start of the task on an
// idle queue. The result is percentile p, in milliseconds.
func (s system) latency(n int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		started := make(chan time.Time, 1)
		q, err := s.open(ctx, e, 10, func(payload) { started <- time.Now() })
		if err != nil {
			return 0, err
		}
		defer q.close()

		if err := q.start(ctx); err != nil {
			return 0, err
		}

		took := make([]time.Duration, 0, n)
		for i := range n + 5 {
			time.Sleep(time.Duration(5+i%7) * time.Millisecond) // let the queue become idle; the time varies to avoid a fixed period
			began := time.Now()
			if err := q.add(ctx, newPayload(i)); err != nil {
				return 0, err
			}
			if at := <-started; i >= 5 { // the first tasks warm up the system
				took = append(took, at.Sub(began))
			}
		}

		if err := q.stop(ctx); err != nil {
			return 0, err
		}

		slices.Sort(took)
		return float64(percentile(took, p)) / float64(time.Millisecond), q.hasCounts(ctx, 0, n+5)
	}
}

func (q *queue) hasCounts(ctx context.Context, waiting, completed int) error {
	w, c, err := q.count(ctx)
	if err == nil && (w != waiting || c != completed) {
		err = fmt.Errorf("the file holds %d waiting and %d completed tasks, not %d and %d", w, c, waiting, completed)
	}
	return err
}

func (q *queue) inOrder(ctx context.Context) error {
	if q.misplaced == nil {
		return nil
	}

	n, err := q.misplaced(ctx)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d tasks were taken before an older one", n)
	}
	return err
}

// misplaced sorts the rows of a table by id. It counts the rows whose time is
// earlier than the time of the previous row.
func misplaced(ctx context.Context, pool *sql.DB, table, column string) (n int, err error) {
	err = pool.QueryRowContext(ctx,
		`SELECT count(*) FROM (SELECT `+column+` AS at, lag(`+column+`) OVER (ORDER BY id) AS before FROM `+
			table+`) WHERE at < before`).Scan(&n)
	return n, err
}

func payloads(from, n int) []payload {
	list := make([]payload, n)
	for i := range list {
		list[i] = newPayload(from + i)
	}
	return list
}

// callersDo calls do(0), do(1), and so on to do(n-1). callers is the number of
// goroutines that make these calls. callersDo returns the first error.
func callersDo(n, callers int, do func(int) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, callers)
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				if err := do(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}

	wg.Wait()
	close(errs)
	return <-errs
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
