package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// The measurements in this file show how much each feature costs a task that
// uses it. They enqueue and run tasks through the library with that feature and
// without it. A call enqueues a thousand tasks, and the worker runs a hundred
// at a time.

// feature is a feature of the library, with tasks that use it.
type feature struct {
	name    string
	options func(i int) []jobs.Option
	before  func(context.Context, *runner.Runner) error // prepares the database before the measurement; may be nil
	after   bool                                        // whether each task of a group of ten waits for the previous one
	again   bool                                        // whether the first attempt fails
	handler func(context.Context, payload) error        // extra work of the handler; may be nil
}

var errAgain = errors.New("once more")

func features() []feature {
	with := func(list ...jobs.Option) func(int) []jobs.Option { return func(int) []jobs.Option { return list } }
	named := func(option func(string) jobs.Option) func(int) []jobs.Option {
		return func(i int) []jobs.Option { return []jobs.Option{option(fmt.Sprint("key-", i))} }
	}
	limit := func(l admin.Limit) func(context.Context, *runner.Runner) error {
		return func(ctx context.Context, r *runner.Runner) error { return admin.SetLimit(ctx, r, l) }
	}
	queue := admin.Target{Kind: admin.QueueTarget, Name: "default"}
	return []feature{
		{name: "no feature: a plain task"},
		{name: "a label", options: named(jobs.Label)},
		{name: "ten priorities", options: func(i int) []jobs.Option { return []jobs.Option{jobs.Priority(i % 10)} }},
		{name: "a unique key for each task", options: named(jobs.Unique)},
		{name: "an expiry", options: with(jobs.ExpiresIn(time.Hour))},
		{name: "due a millisecond later", options: with(jobs.In(time.Millisecond))},
		{name: "a lane for each task", options: named(jobs.Lane)},
		{name: "a hundred lanes", options: func(i int) []jobs.Option { return []jobs.Option{jobs.Lane(fmt.Sprint("lane-", i%100))} }},
		{name: "chains of ten", after: true},
		{name: "a limit of the queue", before: limit(admin.Limit{Target: queue, Running: 1000})},
		{name: "a rate of the queue", before: limit(admin.Limit{Target: queue, Rate: 1_000_000, Per: time.Second, Burst: 1_000_000})},
		{name: "at most once", options: with(jobs.AtMostOnce())},
		{name: "a second attempt", options: with(jobs.MaxAttempts(2),
			jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Max: time.Hour})),
			again: true},
		{name: "one step", handler: func(ctx context.Context, p payload) error {
			_, err := runner.Step(ctx, "one", func(context.Context) (int, error) { return p.N, nil })
			return err
		}},
		{name: "ten queues", options: func(i int) []jobs.Option { return []jobs.Option{jobs.Queue(fmt.Sprint("queue-", i%10))} }},
	}
}

// life measures how much processor time a task with the feature needs from its
// enqueue to its end, in microseconds.
func (f feature) life(n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n) / 10 * 10
		r, err := runner.Open(ctx, e.path("runner.db"), runner.Options{Sync: runner.SyncNormal})
		if err != nil {
			return 0, err
		}
		defer r.Close()

		l := newLedger(n)
		seen := make([]atomic.Bool, n)
		r.Register(noop.Handler(func(ctx context.Context, p payload) error {
			if f.again && !seen[p.N].Swap(true) {
				return errAgain
			}
			if f.handler != nil {
				if err := f.handler(ctx, p); err != nil {
					return err
				}
			}
			l.note(p.N)
			return nil
		}))
		if f.before != nil {
			if err := f.before(ctx, r); err != nil {
				return 0, err
			}
		}

		ctx, halt := context.WithCancel(ctx)
		defer halt()

		before := processorTime()
		if _, err := r.EnqueueSeq(ctx, func(yield func(jobs.Spec) bool) {
			for i := range n {
				var options []jobs.Option
				if f.options != nil {
					options = f.options(i)
				}

				spec := noop.With(newPayload(i), options...)
				if f.after && i%10 > 0 {
					spec.DependsOnEarlier = []int{i - 1}
				}
				if !yield(spec) {
					return
				}
			}
		}); err != nil {
			return 0, err
		}

		ended := make(chan error, 1)
		go func() { ended <- r.Work(ctx, runner.WorkOptions{Concurrency: 100}) }()
		if err := l.wait(ctx); err != nil {
			return 0, err
		}

		halt()
		if err := <-ended; err != nil {
			return 0, err
		}

		used := processorTime() - before
		if err := l.check(); err != nil {
			return 0, err
		}

		_, completed, err := ourCounts(context.WithoutCancel(ctx), r)
		if err == nil && completed != n {
			err = fmt.Errorf("%d of %d tasks are completed in the file", completed, n)
		}

		return float64(used.Nanoseconds()) / 1000 / float64(n), err
	}
}
