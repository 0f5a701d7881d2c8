// Package postgres lets package runner work on databases on PostgreSQL servers,
// version 14 or later. Many machines can enqueue and work on such a database:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"example.com/runner/jobs"
//		"example.com/runner/runner"
//		"example.com/runner/runner/postgres"
//	)
//
//	var Greet = jobs.Define[string]("greet")
//
//	func main() {
//		ctx := context.Background()
//		r, err := runner.Open(ctx, "postgres://user@host/app", runner.Options{Engine: postgres.Engine()})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer r.Close()
//		r.Register(Greet.Handler(func(_ context.Context, name string) error {
//			fmt.Println("hello", name)
//			return nil
//		}))
//		if _, err := r.Enqueue(ctx, Greet.With("Ann")); err != nil {
//			log.Fatal(err)
//		}
//		if err := r.Work(ctx, runner.WorkOptions{UntilEmpty: true}); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The tables are in the schema runner of that database, or in the schema that
// ?search_path=NAME of the address names. Package postgres is separate from
// package runner, so that programs without a server don't link the PostgreSQL
// driver.
//
// The functions and the code that enqueues are the same with a file and with a
// server. So you can test both without a server: package runnertest gives the
// test a file and a fake clock. Only code that uses pgx needs a server: give
// each test a schema of its own (Open), and run its tasks with
// WorkOptions.UntilEmpty.
//
//	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
//		r.Register(Greet.Handler(greet))
//		welcome(t.Context(), r, "Ann") // the code under test
//		runnertest.RunDue(t, r)
//	})
package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/runner/db/pgdriver"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Engine returns a value for runner.Options.Engine.
func Engine() runner.Engine { return runner.Engine{Driver: pgdriver.Engine()} }

// Open opens the database that a pool of pgx is connected to. The tables are in
// the given schema, or in the schema runner if it is "". The search path of the
// pool doesn't matter.
//
// The Runner opens connections of its own, at most seven, because it needs
// LISTEN and settings of its sessions. It opens them as the pool does: with the
// certificates, the dialer, BeforeConnect (such as for a password that expires)
// and AfterConnect of the pool's Config, but without its tracer. So the pool
// may be full or closed. Options.Engine has no effect.
//
// Errors are those of runner.Open, and jobs.ErrInvalid if pool is nil.
func Open(ctx context.Context, pool *pgxpool.Pool, schema string, options runner.Options) (*runner.Runner, error) {
	if pool == nil {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "the pool is nil", Hint: "make it with pgxpool.New"}
	}

	of, address := pgdriver.EngineOf(pool.Config(), schema)
	options.Engine = runner.Engine{Driver: of}
	return runner.Open(ctx, address, options)
}
