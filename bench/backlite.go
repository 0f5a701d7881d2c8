package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mikestefanello/backlite"
)

// Config makes payload a task of backlite. Its settings keep completed tasks,
// as all systems in this benchmark do.
func (payload) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "noop", MaxAttempts: 1, Timeout: time.Minute,
		Retention: &backlite.Retention{Duration: time.Hour, Data: &backlite.RetainData{}}}
}

// backliteSystem returns the system that uses backlite. connections is the
// maximum number of its connections to the database. 0 means no limit, as in
// the README of backlite.
func backliteSystem(name, level string, connections int) system {
	return system{name, func(ctx context.Context, e *env, concurrency int, handle func(payload)) (*queue, error) {
		pool, err := sql.Open("sqlite", dsn(e.path("backlite.db"), level))
		if err != nil {
			return nil, err
		}

		pool.SetMaxOpenConns(connections)
		client, err := backlite.NewClient(backlite.ClientConfig{DB: pool, NumWorkers: concurrency, ReleaseAfter: 10 * time.Minute,
			CleanupInterval: time.Hour})
		if err != nil {
			return nil, err
		}

		client.Register(backlite.NewQueue(func(_ context.Context, p payload) error { handle(p); return nil }))
		if err := client.Install(); err != nil {
			return nil, err
		}

		return &queue{
			add: func(ctx context.Context, p payload) error { _, err := client.Add(p).Ctx(ctx).Save(); return err },
			addMany: func(ctx context.Context, list []payload) error {
				tasks := make([]backlite.Task, len(list))
				for i, p := range list {
					tasks[i] = p
				}
				_, err := client.Add(tasks...).Ctx(ctx).Save()
				return err
			},
			start: func(ctx context.Context) error { client.Start(ctx); return nil },
			stop: func(ctx context.Context) error {
				if !client.Stop(ctx) {
					return errors.New("backlite did not stop")
				}
				return nil
			},
			count: func(ctx context.Context) (int, int, error) {
				return counts(ctx, pool,
					`SELECT (SELECT count(*) FROM backlite_tasks), (SELECT count(*) FROM backlite_tasks_completed WHERE succeeded = 1)`)
			},
			close: pool.Close,
		}, nil
	}}
}
