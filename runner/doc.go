// Package runner is a durable job runner in one SQLite file. A program opens the file, registers jobs, enqueues tasks and calls Work.
//
//	var SendEmail = jobs.Define[Email]("email.send", jobs.MaxAttempts(8))
//
//	if runner.Guardian() { // first in main
//		return
//	}
//	r, err := runner.Open(ctx, "app.db", runner.Options{Concurrency: 4})
//	r.Register(SendEmail.Handler(mailer.Send), runner.Commands(runner.CommandOptions{}))
//	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(10*time.Minute)))
//	err = r.Work(ctx) // until ctx ends, then drains
//
// Package jobs defines tasks, options, states and errors. Package db stores the tasks. This package is the API of a program that uses
// runner.
//
// Work is the worker. It runs the functions and commands of tasks, renews the leases of running tasks, takes over the tasks of workers
// that died, and enqueues the tasks of schedules (internal/engine). A program that registers Commands begins its main with Guardian,
// because the worker starts its own program again as the guardian of its commands (internal/exec). A program that registers only functions
// needs no guardian.
package runner
