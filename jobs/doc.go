// Package jobs defines tasks, their options and states, and the handlers that
// run them. It has plain values and pure functions, without a clock, I/O or
// goroutines.
//
// A task is one row in the database: "run this job, with these arguments, under
// these rules". A job is either a Go function or a command. An attempt is one
// execution of a task.
//
// A program defines each job once, in a package that both the code that
// enqueues and the code that works import:
//
//	type Email struct{ To, Subject string }
//
//	var SendEmail = jobs.Define[Email]("email.send", jobs.MaxAttempts(8), jobs.Timeout(30*time.Second))
//
// The code that enqueues makes a Spec with the arguments of the task. Options
// given to With override those given to Define:
//
//	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(10*time.Minute)))
//
// The code that works registers a function for the job. The error of the
// function decides what follows:
//
//	r.Register(SendEmail.Handler(func(ctx context.Context, mail Email) error {
//		err := smtp.Send(ctx, mail)
//		if errors.Is(err, smtp.ErrNoSuchUser) {
//			return jobs.Fail(err) // failed, although attempts are left
//		}
//		return err // nil completes the task; any other error is tried again later
//	}))
//
// Here r is a *runner.Runner, and package runner has the calls that use a
// database. This is a whole program. It enqueues a task, and runs tasks until
// no task is due:
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
//	)
//
//	var Greet = jobs.Define[string]("greet", jobs.MaxAttempts(3))
//
//	func main() {
//		ctx := context.Background()
//		r, err := runner.Open(ctx, "app.db", runner.Options{})
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
// Package runnertest tests the function and the code that enqueues, on a real
// database and with a fake clock:
//
//	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
//		r.Register(Greet.Handler(greet))
//		if _, err := r.Enqueue(t.Context(), Greet.With("Ann")); err != nil {
//			t.Fatal(err)
//		}
//		if ran := runnertest.RunDue(t, r); ran[0].State != jobs.Completed {
//			t.Errorf("got %s, want completed", ran[0].State)
//		}
//	})
//
// A task moves through these states:
//
//	enqueue ─▶ scheduled ──due──▶ pending ──claim──▶ running ──finish──▶ completed
//	              ▲                 ▲  ▲               │ │ │               failed
//	              │                 │  └─lost,shutdown─┘ │ │               cancelled
//	              └───────snooze────┼────────────────────┘ │
//	                                └─due─ retrying ◀──────┘
//
// A blocked task waits for other tasks, for its lane, or until somebody resumes
// it. Cancelling ends a waiting task at once, and a running task through its
// worker. Retrying makes a finished task pending again. docs/glossary.md
// explains the words of runner, such as lane, lease and suspect.
//
// The values of this package are not changed after they are made, so many
// goroutines may use them.
package jobs
