package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type riverWorker struct {
	riverqueue.WorkerDefaults[payload]
	handle func(payload)
}

func (w *riverWorker) Work(_ context.Context, job *riverqueue.Job[payload]) error {
	w.handle(job.Args)
	return nil
}

// river returns the system that uses River with its pgx driver. wait is River's
// cooldown and poll interval. 0 means River's defaults, which are 100 ms and 1
// s.
func river(name string, wait time.Duration) system {
	return system{name, func(ctx context.Context, address string, concurrency int, handle func(payload)) (*queue, error) {
		config, err := pgxpool.ParseConfig(address)
		if err != nil {
			return nil, err
		}

		config.MaxConns = 20 // the server allows 200 connections in total
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}

		migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
		if err != nil {
			return nil, err
		}
		if handle == nil { // this is the first client, which creates the tables
			if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
				return nil, err
			}
		} else if there, err := migrator.ExistingVersions(ctx); err == nil && len(there) == 0 {
			if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
				return nil, err
			}
		}

		workers := riverqueue.NewWorkers()
		riverqueue.AddWorker(workers, &riverWorker{handle: handle})
		options := &riverqueue.Config{Logger: slog.New(slog.DiscardHandler), Workers: workers}
		if handle != nil {
			options.FetchCooldown, options.FetchPollInterval = wait, wait
			options.Queues = map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: concurrency}}
		}

		client, err := riverqueue.NewClient(riverpgxv5.New(pool), options)
		if err != nil {
			return nil, err
		}

		return &queue{
			add: func(ctx context.Context, p payload) error { _, err := client.Insert(ctx, p, nil); return err },
			addMany: func(ctx context.Context, list []payload) error {
				params := make([]riverqueue.InsertManyParams, len(list))
				for i, p := range list {
					params[i].Args = p
				}
				_, err := client.InsertManyFast(ctx, params)
				return err
			},
			start: client.Start,
			stop:  client.Stop,
			count: func(ctx context.Context) (waiting, completed int, err error) {
				err = pool.QueryRow(ctx,
					`SELECT count(*) FILTER (WHERE state = 'available'), count(*) FILTER (WHERE state = 'completed') FROM river_job`).
					Scan(&waiting, &completed)
				return waiting, completed, err
			},
			close: func() error { pool.Close(); return nil },
		}, nil
	}}
}
