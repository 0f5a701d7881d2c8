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
//		task, err := r.Enqueue(ctx, Greet.With("Ann"))
//		log.Println(task.ID, err, r.WorkUntilEmpty(ctx))
//	}
//
// The tables are in the schema runner of that database, or in the schema that
// ?search_path=NAME of the address names. Package postgres is separate from
// package runner, so that programs without a server don't link the PostgreSQL
// driver.
//
// The functions and the code that enqueues are the same with a file and with a
// server. So you can test both without a server: package runnertest gives the
// test a file and a fake clock.
//
//	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
//		r.Register(Greet.Handler(greet))
//		welcome(t.Context(), r, "Ann") // the code under test
//		runnertest.Drain(t, r)
//	})
package postgres

import (
	"example.com/runner/db/pgdriver"
	"example.com/runner/runner"
)

// Engine returns a value for runner.Options.Engine.
func Engine() runner.Engine { return runner.Engine{Driver: pgdriver.Engine()} }
