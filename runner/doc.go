// Package runner is a durable job runner in one SQLite file. A program opens
// the file, registers its jobs, enqueues tasks and calls Work. No server is
// needed: the file is the queue, and every process that opens it can enqueue
// and work.
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"os"
//		"os/signal"
//		"time"
//
//		"example.com/runner/jobs"
//		"example.com/runner/runner"
//	)
//
//	type Email struct{ To string }
//
//	var SendEmail = jobs.Define[Email]("email.send", jobs.MaxAttempts(8))
//
//	func send(_ context.Context, mail Email) error {
//		log.Print("to ", mail.To)
//		return nil
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		r, err := runner.Open(ctx, "app.db", runner.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer r.Close()
//		r.Register(SendEmail.Handler(send))
//		if _, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(10*time.Minute))); err != nil {
//			log.Fatal(err)
//		}
//		if err := r.Work(ctx, runner.WorkOptions{}); err != nil { // Work returns when ctx ends and the running tasks have ended
//			log.Fatal(err)
//		}
//	}
//
// # What it promises
//
// When Enqueue returns, the task is on the disk. A task runs in at most one
// worker at a time, and never again after it has completed. If the worker dies,
// another attempt follows, so a function may run more than once for one task.
// Step stores the results of the parts of a function, and FinishTx commits the
// effect of a function together with the end of its task. docs/reliability.md
// has all promises, their limits and their tests.
//
// # Transactions
//
// EnqueueTx adds a task in a transaction of the program. So one transaction can
// add the row of an order and the task that ships the order: the database gets
// either both or neither. New puts the tables of runner into the program's own
// database.
//
// # Other packages
//
// Package jobs has the options of tasks, the states and the errors. Package
// runner/admin looks inside and operates: why a task waits, pauses of queues or
// of everything, limits, workers, backups. docs/embedding.md is the guide.
//
// # Tests
//
// Package runnertest gives a test a real database in a temporary directory and
// a fake clock. It also simulates crashes:
//
//	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
//		r.Register(SendEmail.Handler(send))
//		signUp(t.Context(), r, "ann@example.com")
//		runnertest.Advance(t, 10*time.Minute)
//		runnertest.RunDue(t, r) // runs what is due
//	})
//
// # Concurrency and errors
//
// All methods of a Runner are safe for use by many goroutines. Register and Use
// come before Work. A call whose context ends returns the cause of the context.
// Other errors match one of the sentinels of package jobs, such as
// jobs.ErrBusy.
//
// # Commands
//
// A program that registers the handler of package runner/commands also runs the
// commands that others enqueue. A program that registers only functions doesn't
// link that package.
package runner
