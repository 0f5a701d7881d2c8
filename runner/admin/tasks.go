package admin

import (
	"context"
	"fmt"
	"slices"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	// Attempt is the record of one attempt of a task: its worker, its times,
	// and how it ended. The running attempt has the state jobs.Running.
	Attempt = db.Attempt
	// Chunk is a piece of the output of an attempt. Seq numbers the pieces of
	// an attempt from 1, in the order in which they were printed.
	Chunk = db.Chunk
	// Stream is where a Chunk was printed.
	Stream = db.Stream
	// Step is the record of a step that has ended (runner.Step), or of a sleep.
	// A later attempt of the task does not run the step again.
	Step = db.Step
	// Dependency is a dependency between a given task and the task ID, which is
	// in State (empty if it was deleted). With Any, every outcome satisfies it.
	Dependency = db.Dependency
)

// The streams of a command.
const (
	Stdout = db.Stdout
	Stderr = db.Stderr
)

// Attempts returns the attempts of a task, oldest first. If the task is
// running, the last element is the attempt in progress, in state running.
func Attempts(ctx context.Context, r *runner.Runner, task jobs.Task) ([]Attempt, error) {
	attempts, err := db.Of(r).Attempts(ctx, task.ID)
	// the store has only attempts that have ended: if the running one is among
	// them, it has ended since the caller read the task
	ended := func(a Attempt) bool { return a.GenerationID == task.GenerationID }
	if err == nil && task.State == jobs.Running && !slices.ContainsFunc(attempts, ended) {
		attempts = append(attempts, Attempt{TaskID: task.ID, GenerationID: task.GenerationID, Number: task.Attempt,
			State: jobs.Running, Counted: true, WorkerID: task.WorkerID, Worker: task.Worker, StartedAt: task.StartedAt,
			Duration: now().Sub(task.StartedAt)})
	}
	return attempts, err
}

// Output returns up to limit pieces of the output that an attempt has printed
// so far, in order. It skips the pieces with numbers up to seq. A seq of 0
// skips none.
func Output(ctx context.Context, r *runner.Runner, attempt Attempt, seq int64, limit int) ([]Chunk, error) {
	if err := validLimit(limit); err != nil {
		return nil, err
	}
	return db.Of(r).Output(ctx, attempt.Claim(), seq, limit)
}

// Steps returns the records of a task's steps and sleeps, in order.
func Steps(ctx context.Context, r *runner.Runner, id int64) ([]Step, error) {
	return db.Of(r).Steps(ctx, id)
}

// Dependencies returns the tasks that a task waits for or has waited for, and
// those that wait or have waited for it. Both lists are in the order of ids and
// have at most limit entries; 0 means all.
func Dependencies(ctx context.Context, r *runner.Runner, id int64, limit int) (on, by []Dependency, err error) {
	if err := validLimit(limit); err != nil {
		return nil, nil, err
	}
	return db.Of(r).Dependencies(ctx, id, limit)
}

func validLimit(limit int) error {
	if limit >= 0 {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("limit %d is negative", limit), Hint: "a limit of 0 or more"}
}
