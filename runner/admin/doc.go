// Package admin looks inside the database of a Runner and operates it: why a
// task waits, workers, queues and their pauses, limits, attempts and output,
// schedules, backups. Programs that only enqueue and run tasks don't need it.
//
// Many of its types are declared in package db, which other modules must not
// import. Their fields are part of the API all the same: `go doc
// example.com/runner/db.Limit` prints those of a Limit, and db.WorkerInfo has
// those of a Worker.
//
// Each function gets the Runner after the context:
//
//	wait, err := admin.Why(ctx, r, task)
//
// All functions are safe for use by many goroutines, and none needs a worker.
// Their errors are those of the methods of runner.Runner, such as jobs.ErrBusy
// while other processes hold the write lock of the file.
package admin

import "time"

// now returns the time. This package reads the clock nowhere else.
func now() time.Time { return time.Now() }
