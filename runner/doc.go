// Package runner is a durable job runner in one SQLite file: open a file, register jobs, enqueue tasks, work.
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
// Words and rules are in package jobs; this package is time, goroutines and processes; package db is the file.
//
// A Work is one loop (work.go) that takes turns (turn.go): write what has ended, claim for the slots that are free, start. Each
// attempt has a goroutine (execute.go). Beside the loop, heartbeats renew the leases (heartbeat.go) and the reaper takes over tasks of workers
// that are gone (reap.go). Nothing polls the table: the loop looks when this process has enqueued something, when
// another has committed (internal/notify), and when the next scheduled task is due.
//
// Each worker holds a liveness lock (lock.go), by which others know at once that it is dead. Its commands are children of its
// guardian (guardian.go), a second process of the same program, which kills all of them when the worker goes or loses its leases.
// So a program that registers Commands begins its main with Guardian; workers of functions only have none.
package runner
