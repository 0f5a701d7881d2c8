package main

import (
	"context"
	"errors"
	"sync"
)

// arrival measures how fast processes run tasks that arrive while the processes
// work, in tasks per second. Each process has 25 slots. The tasks arrive in
// transactions of the given size. If the size is 1, sixteen callers add tasks.
// For any other size, one caller adds tasks.
func (s system) arrival(n, processes, size int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n) / size * size
		q, err := s.open(ctx, e.address, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()

		took, err := e.measure(ctx, crew{system: s.name, addresses: []string{e.address}, n: n, processes: processes, concurrency: 25,
			feed: func(ctx context.Context) error { return q.feed(ctx, n, size) }})
		if err != nil {
			return 0, err
		}
		return float64(n) / took.Seconds(), q.hasCounts(ctx, 0, n)
	}
}

// feed adds n tasks in transactions of the given size.
func (q *queue) feed(ctx context.Context, n, size int) error {
	callers := 1
	if size == 1 {
		callers = 16
	}

	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for from := c * size; from < n && errs[c] == nil; from += callers * size {
				if size == 1 {
					errs[c] = q.add(ctx, newPayload(from))
				} else {
					errs[c] = q.addMany(ctx, payloads(from, size))
				}
			}
		})
	}

	wg.Wait()
	return errors.Join(errs...)
}
