package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// payload is the argument of every task of every system: about a hundred bytes
// of JSON.
type payload struct {
	N       int    `json:"n"`
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// Kind makes payload a job of River.
func (payload) Kind() string { return "noop" }

func newPayload(n int) payload {
	return payload{N: n, To: "someone@example.com", Subject: "a payload of about one hundred bytes, as tasks have"}
}

func payloads(from, n int) []payload {
	list := make([]payload, n)
	for i := range list {
		list[i] = newPayload(from + i)
	}
	return list
}

// queue is a job queue of some system, with the operations that workloads need.
type queue struct {
	add     func(context.Context, payload) error   // adds a task and returns after the commit
	addMany func(context.Context, []payload) error // adds all tasks in one transaction
	start   func(context.Context) error            // starts the worker
	stop    func(context.Context) error            // stops the worker after it has stored the outcomes of all tasks that have run
	count   func(context.Context) (waiting, completed int, err error)
	close   func() error
}

func (q *queue) hasCounts(ctx context.Context, waiting, completed int) error {
	w, c, err := q.count(ctx)
	if err == nil && (w != waiting || c != completed) {
		err = fmt.Errorf("there are %d waiting and %d completed tasks, not %d and %d", w, c, waiting, completed)
	}
	return err
}

// system is a job system. open opens a queue. Each task of the queue calls
// handle.
type system struct {
	name string
	open func(ctx context.Context, address string, concurrency int, handle func(payload)) (*queue, error)
}

var systems = []system{ours("runner", 0), river("River, default", 0), river("River, tuned", time.Millisecond)}

// measurements returns the measurements, in the order of the report. The first
// system of each workload is runner.
func measurements() (list []*measurement) {
	add := func(workload, unit string, of []system, run func(system) func(context.Context, *env) (float64, error)) {
		for _, s := range of {
			list = append(list, &measurement{workload: workload, unit: unit, system: s.name, run: run(s)})
		}
	}
	tuned := []system{systems[0], systems[2]}
	for _, processes := range []int{1, 4} {
		add(fmt.Sprintf("drain-100x%d", processes), "/s", systems, func(s system) func(context.Context, *env) (float64, error) {
			n := 40_000
			if s.name == "River, default" { // River sleeps between fetches and is slow; the result is a rate, so fewer tasks are enough
				n = 10_000
			}
			return s.drain(n, processes, 100)
		})
	}

	add("drain-10x1", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.drain(10_000, 1, 10) })
	for _, processes := range []int{1, 4} {
		add(fmt.Sprintf("drain-25x%d", processes), "/s", tuned, func(s system) func(context.Context, *env) (float64, error) {
			return s.drain(20_000, processes, 25)
		})
	}

	add("far-100x1", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.far(20_000, 1, 100) })
	add("arrival-100", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.arrival(20_000, 4, 100) })
	add("arrival-1", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.arrival(8000, 4, 1) })
	add("enqueue-1", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.enqueue(4000, 1) })
	add("enqueue-100", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.enqueue(20_000, 100) })
	add("batch-10", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.batch(10_000, 10) })
	add("batch-1000", "/s", tuned, func(s system) func(context.Context, *env) (float64, error) { return s.batch(50_000, 1000) })
	for _, p := range []int{50, 99} {
		add(fmt.Sprintf("latency-p%d", p), "ms", systems, func(s system) func(context.Context, *env) (float64,
			error) {
			return s.latency(200, p)
		})
	}

	for _, processes := range []int{1, 2, 4, 8} {
		for _, concurrency := range []int{1, 10, 100} {
			add(fmt.Sprintf("many-%dx%d", concurrency, processes), "/s", systems[:1],
				func(s system) func(context.Context, *env) (float64, error) {
					return s.drain(min(40_000, 2000*concurrency), processes, concurrency)
				})
		}
	}

	for _, schemas := range [][]string{{"one"}, {"one", "two"}, {"one", "two", "three", "four"}} {
		add(fmt.Sprintf("many-schemas-%d", len(schemas)), "/s", systems[:1],
			func(s system) func(context.Context, *env) (float64, error) {
				return s.drain(40_000, 4, 100, schemas...)
			})
	}

	return list
}

// drain measures how fast processes run n tasks that are in the database
// already, in tasks per second. The measurement begins when all processes
// begin. It ends when they have stored the ends of all tasks and stopped. drain
// distributes the tasks and the processes among the given schemas. Without
// schemas it uses the standard schema.
func (s system) drain(n, processes, concurrency int, schemas ...string) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		if schemas == nil {
			schemas = []string{""}
		}

		n -= n % len(schemas)
		var addresses []string
		var queues []*queue
		for i, schema := range schemas {
			address := e.address
			if schema != "" {
				address += "&search_path=" + schema
			}

			q, err := s.open(ctx, address, 1, nil)
			if err != nil {
				return 0, err
			}
			defer q.close()

			each := n / len(schemas)
			for from := 0; from < each; from += 1000 {
				if err := q.addMany(ctx, payloads(i*each+from, min(1000, each-from))); err != nil {
					return 0, err
				}
			}

			addresses, queues = append(addresses, address), append(queues, q)
		}

		took, err := e.measure(ctx, crew{system: s.name, addresses: addresses, n: n, processes: processes, concurrency: concurrency})
		if err != nil {
			return 0, err
		}

		for _, q := range queues {
			if err := q.hasCounts(ctx, 0, n/len(schemas)); err != nil {
				return 0, err
			}
		}

		return float64(n) / took.Seconds(), nil
	}
}

// enqueue measures how fast goroutines add n tasks one by one, in tasks per
// second. Each goroutine waits for its commit.
func (s system) enqueue(n, callers int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n) / callers * callers
		q, err := s.open(ctx, e.address, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()

		if err := q.add(ctx, newPayload(0)); err != nil { // the first call prepares statements and connections for all calls
			return 0, err
		}

		began := time.Now()
		var failed atomic.Pointer[error]
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := c; i < n && failed.Load() == nil; i += callers {
					if err := q.add(ctx, newPayload(i)); err != nil {
						failed.Store(&err)
					}
				}
			})
		}

		wg.Wait()
		took := time.Since(began)
		if err := failed.Load(); err != nil {
			return 0, *err
		}

		return float64(n) / took.Seconds(), q.hasCounts(ctx, n+1, 0)
	}
}

// batch measures how fast a caller adds n tasks in transactions of the given
// size, in tasks per second.
func (s system) batch(n, size int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := s.open(ctx, e.address, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()

		began := time.Now()
		for from := 0; from < n; from += size {
			if err := q.addMany(ctx, payloads(from, min(size, n-from))); err != nil {
				return 0, err
			}
		}

		took := time.Since(began)
		return float64(n) / took.Seconds(), q.hasCounts(ctx, n, 0)
	}
}

// latency measures percentile p of the time from an enqueue call to the start
// of its task, on an idle queue, in milliseconds. The worker and the caller
// have separate clients, as they would have in separate processes.
func (s system) latency(n, p int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		started := make(chan time.Time, 1)
		worker, err := s.open(ctx, e.address, 10, func(payload) { started <- time.Now() })
		if err != nil {
			return 0, err
		}
		defer worker.close()

		caller, err := s.open(ctx, e.address, 1, nil) // a client of its own for the caller, as in another process
		if err != nil {
			return 0, err
		}
		defer caller.close()

		if err := worker.start(ctx); err != nil {
			return 0, err
		}

		took := make([]time.Duration, 0, n)
		for i := range n + 5 {
			time.Sleep(time.Duration(5+i%7) * time.Millisecond) // let the queue become idle; the time varies to avoid a fixed period
			began := time.Now()
			if err := caller.add(ctx, newPayload(i)); err != nil {
				return 0, err
			}

			select {
			case at := <-started:
				if i >= 5 { // the first tasks warm up the system
					took = append(took, at.Sub(began))
				}
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}

		if err := worker.stop(ctx); err != nil {
			return 0, err
		}

		slices.Sort(took)
		at := took[min(len(took)*p/100, len(took)-1)]
		return float64(at) / float64(time.Millisecond), caller.hasCounts(ctx, 0, n+5)
	}
}
