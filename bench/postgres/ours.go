package main

import (
	"context"
	"iter"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

var noop = jobs.Define[payload]("noop", jobs.MaxAttempts(1))

// ours returns the system that uses runner as a library. Completed tasks are
// kept for so long.
func ours(name string, keep time.Duration) system {
	return system{name, func(ctx context.Context, address string, concurrency int, handle func(payload)) (*queue, error) {
		r, err := runner.Open(ctx, address, runner.Options{Engine: postgres.Engine()})
		if err != nil {
			return nil, err
		}

		r.Register(noop.Handler(func(_ context.Context, p payload) error { handle(p); return nil }))
		ended := make(chan error, 1)
		var halt context.CancelFunc
		return &queue{
			add:     func(ctx context.Context, p payload) error { _, err := r.Enqueue(ctx, noop.With(p)); return err },
			addMany: func(ctx context.Context, list []payload) error { _, err := r.EnqueueSeq(ctx, specs(list)); return err },
			start: func(ctx context.Context) error {
				ctx, halt = context.WithCancel(ctx)
				go func() { ended <- r.Work(ctx, runner.WorkOptions{Concurrency: concurrency, Keep: keep}) }()
				return nil
			},
			stop: func(context.Context) error { halt(); return <-ended },
			count: func(ctx context.Context) (waiting, completed int, err error) {
				if waiting, _, err = r.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Pending}}); err != nil {
					return 0, 0, err
				}
				completed, _, err = r.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Completed}})
				return waiting, completed, err
			},
			close: r.Close,
		}, nil
	}}
}

func specs(list []payload) iter.Seq[jobs.Spec] {
	return func(yield func(jobs.Spec) bool) {
		for _, p := range list {
			if !yield(noop.With(p)) {
				return
			}
		}
	}
}
