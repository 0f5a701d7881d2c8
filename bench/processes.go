package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// The measurements in this file use several processes; see child.go.

// filled creates a database and adds n pending tasks.
func filled(ctx context.Context, e *env, n int) (*runner.Runner, error) {
	r, err := runner.Open(ctx, e.path("runner.db"), runner.Options{Sync: runner.SyncNormal})
	if err != nil {
		return nil, err
	}
	_, err = r.EnqueueSeq(ctx, specs(payloads(0, n)))
	return r, err
}

// manyProcesses measures how fast several processes drain one file, in tasks
// per second. Each process runs ten tasks at a time. If starved is set,
// manyProcesses instead measures the longest time that a process waits for its
// next task, in milliseconds. The wait for the first task doesn't count.
func manyProcesses(n, processes int, starved bool) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		r, err := filled(ctx, e, n)
		if err != nil {
			return 0, err
		}
		defer r.Close()

		var workers []*worker
		for range processes {
			w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: 10, UntilEmpty: true, Held: true})
			if err != nil {
				return 0, err
			}
			workers = append(workers, w)
		}

		began := time.Now() // start the clock when all workers are ready: in practice a worker starts once and runs for a long time
		for _, w := range workers {
			if err := w.begin(); err != nil {
				return 0, err
			}
		}

		ran, longest := 0, time.Duration(0)
		for _, w := range workers {
			report, err := w.end(false)
			if err != nil {
				return 0, err
			}
			ran += report.Ran
			longest = max(longest, report.Longest)
		}

		took := time.Since(began)
		if ran != n {
			return 0, fmt.Errorf("%d tasks were run %d times", n, ran)
		}

		_, completed, err := ourCounts(ctx, r)
		if err == nil && completed != n {
			err = fmt.Errorf("%d of %d tasks are completed in the file", completed, n)
		}
		if starved {
			return ms(longest), err
		}

		return perSecond(n, took), err
	}
}

// keptSpeed measures how much a worker slows down while this process enqueues a
// task every 5 ms. The result is the speed of the worker during these enqueues,
// in percent of its speed without them. Periods with and without enqueues
// alternate.
func keptSpeed(concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, e.size(200_000))
		if err != nil {
			return 0, err
		}
		defer r.Close()

		w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: concurrency})
		if err != nil {
			return 0, err
		}

		stretch := time.Duration(e.size(600)) * time.Millisecond
		var rates [2]float64
		_, done, err := ourCounts(ctx, r)
		if err != nil {
			return 0, err
		}

		for i := range 6 {
			began := time.Now()
			for time.Since(began) < stretch {
				if i%2 == 1 {
					if _, err := r.Enqueue(ctx, noop.With(newPayload(i), jobs.Queue("other"), jobs.In(time.Hour))); err != nil {
						return 0, err
					}
				}
				time.Sleep(5 * time.Millisecond)
			}

			took := time.Since(began)
			waiting, now, err := ourCounts(ctx, r)
			if err != nil {
				return 0, err
			}
			if waiting == 0 && !e.short {
				return 0, fmt.Errorf("the drain was over before the enqueueing")
			}

			rates[i%2] += perSecond(now-done, took)
			if _, done, err = ourCounts(ctx, r); err != nil { // count again, because tasks have completed during the first count
				return 0, err
			}
		}

		if _, err := w.end(true); err != nil {
			return 0, err
		}
		if rates[0] == 0 {
			return 0, fmt.Errorf("nothing was drained")
		}

		return 100 * rates[1] / rates[0], nil
	}
}

// enqueueBeside measures how long this process needs to enqueue a task while
// another process drains at full speed. The result is percentile p, in
// milliseconds.
func enqueueBeside(concurrency int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, e.size(100_000))
		if err != nil {
			return 0, err
		}
		defer r.Close()

		w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: concurrency})
		if err != nil {
			return 0, err
		}

		var took []time.Duration
		for i := range e.size(200) {
			began := time.Now()
			if _, err := r.Enqueue(ctx, noop.With(newPayload(i), jobs.Queue("other"), jobs.In(time.Hour))); err != nil {
				return 0, err
			}
			took = append(took, time.Since(began))
			time.Sleep(5 * time.Millisecond)
		}

		waiting, _, err := ourCounts(ctx, r)
		if err != nil {
			return 0, err
		}
		if waiting == 0 && !e.short {
			return 0, fmt.Errorf("the drain was over before the enqueueing")
		}

		slices.Sort(took)
		if _, err := w.end(true); err != nil {
			return 0, err
		}

		return ms(percentile(took, p)), nil
	}
}

// latencyAcross measures the time from an enqueue in this process to the start
// of the task in another process. The result is percentile p, in milliseconds.
func latencyAcross(n int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		r, err := filled(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		defer r.Close()

		w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: 10})
		if err != nil {
			return 0, err
		}

		var took []time.Duration
		for i := range n {
			time.Sleep(time.Duration(5+i%7) * time.Millisecond)
			began := time.Now()
			task, err := r.Enqueue(ctx, probe.With(began.UnixNano()))
			if err != nil {
				return 0, err
			}

			late, err := probe.Result(r.Await(ctx, task.ID))
			if err != nil {
				return 0, err
			}
			took = append(took, late)
		}

		if _, err := w.end(true); err != nil {
			return 0, err
		}

		slices.Sort(took)
		return ms(percentile(took, p)), nil
	}
}

// start measures how long a new process needs to enqueue one task while an idle
// worker uses the same file. The result is the median of n processes, in
// milliseconds.
func start(args func(e *env) []string, n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		defer r.Close()

		w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: 1})
		if err != nil {
			return 0, err
		}

		words := args(e)
		var took []time.Duration
		for range e.size(n) {
			p, err := e.process(ctx, "", words[0], words[1:]...)
			if err != nil {
				return 0, err
			}
			took = append(took, p.took)
		}

		if _, err := w.end(true); err != nil {
			return 0, err
		}

		slices.Sort(took)
		there, _, err := r.Count(ctx, jobs.Filter{})
		if err == nil && there != len(took) {
			err = fmt.Errorf("%d of %d tasks are there", there, len(took))
		}

		return ms(percentile(took, 0.5)), err
	}
}

// batchLines measures how fast the command line enqueues a file of n lines, in
// lines per second. If memory is set, it measures the peak memory of the
// process instead, in megabytes.
func batchLines(n int, memory bool) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `{"args":["echo","line %d of a batch"],"priority":%d,"label":"line"}`+"\n", i, i%10)
		}

		if err := os.WriteFile(e.path("lines"), []byte(text.String()), 0o600); err != nil {
			return 0, err
		}
		if memory {
			most, err := e.memory(ctx, e.binary, "enqueue", "--batch", e.path("lines"))
			if err != nil {
				return 0, err
			}
			return float64(most) / 1e6, e.hasCounts(ctx, n, 0)
		}

		p, err := e.runner(ctx, "", "enqueue", "--batch", e.path("lines"))
		if err != nil {
			return 0, err
		}

		return perSecond(n, p.took), e.hasCounts(ctx, n, 0)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
