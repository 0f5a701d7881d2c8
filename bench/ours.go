package main

import (
	"context"
	"database/sql"
	"iter"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

var noop = jobs.Define[payload]("noop", jobs.MaxAttempts(1))

// ours returns the system that uses runner as a library.
func ours(name string, level runner.Sync) system {
	return system{name, func(ctx context.Context, e *env, concurrency int, handle func(payload)) (*queue, error) {
		r, err := runner.Open(ctx, e.path("runner.db"), runner.Options{Sync: level})
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
				go func() { ended <- r.Work(ctx, runner.WorkOptions{Concurrency: concurrency}) }()
				return nil
			},
			stop:  func(context.Context) error { halt(); return <-ended },
			count: func(ctx context.Context) (int, int, error) { return ourCounts(ctx, r) },
			misplaced: func(ctx context.Context) (int, error) {
				pool, err := sql.Open("sqlite", dsn(admin.Path(r), "NORMAL"))
				if err != nil {
					return 0, err
				}
				defer pool.Close()
				return misplaced(ctx, pool, "tasks", "started_at")
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

func ourCounts(ctx context.Context, r *runner.Runner) (waiting, completed int, err error) {
	if waiting, _, err = r.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Pending}}); err != nil {
		return 0, 0, err
	}
	completed, _, err = r.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Completed}})
	return waiting, completed, err
}
