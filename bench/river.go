package main

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// Kind makes payload a job of River.
func (payload) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[payload]
	handle func(payload)
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[payload]) error {
	w.handle(job.Args)
	return nil
}

// riverSystem returns the system that uses River with its SQLite driver. It has
// one connection, because River's documentation requires that. wait is River's
// cooldown and poll interval. 0 means River's defaults, which are 100 ms and 1
// s.
func riverSystem(name, level string, wait time.Duration) system {
	return system{name, func(ctx context.Context, e *env, concurrency int, handle func(payload)) (*queue, error) {
		pool, err := sql.Open("sqlite", dsn(e.path("river.db"), level))
		if err != nil {
			return nil, err
		}

		pool.SetMaxOpenConns(1)
		migrator, err := rivermigrate.New(riversqlite.New(pool), nil)
		if err != nil {
			return nil, err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return nil, err
		}

		workers := river.NewWorkers()
		river.AddWorker(workers, &riverWorker{handle: handle})
		client, err := river.NewClient(riversqlite.New(pool), &river.Config{
			Logger: slog.New(slog.DiscardHandler), Workers: workers, FetchCooldown: wait, FetchPollInterval: wait,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		})
		if err != nil {
			return nil, err
		}

		return &queue{
			add: func(ctx context.Context, p payload) error { _, err := client.Insert(ctx, p, nil); return err },
			addMany: func(ctx context.Context, list []payload) error {
				params := make([]river.InsertManyParams, len(list))
				for i, p := range list {
					params[i].Args = p
				}
				_, err := client.InsertManyFast(ctx, params)
				return err
			},
			start: client.Start,
			stop:  client.Stop,
			count: func(ctx context.Context) (int, int, error) {
				return counts(ctx, pool,
					`SELECT count(*) FILTER (WHERE state = 'available'), count(*) FILTER (WHERE state = 'completed') FROM river_job`)
			},
			misplaced: func(ctx context.Context) (int, error) { return misplaced(ctx, pool, "river_job", "attempted_at") },
			close:     pool.Close,
		}, nil
	}}
}

func counts(ctx context.Context, pool *sql.DB, text string) (waiting, completed int, err error) {
	err = pool.QueryRowContext(ctx, text).Scan(&waiting, &completed)
	return waiting, completed, err
}
