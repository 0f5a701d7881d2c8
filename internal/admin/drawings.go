package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	// Run is an attempt that has ended, or that runs.
	Run = db.Run
	// WorkerRuns is a worker with the attempts that it ran.
	WorkerRuns = db.WorkerRuns
	// DependencyLink is a dependency: the task with the id Task depends on the task with the id On.
	DependencyLink = db.DependencyLink
)

// RunsByWorker returns the attempts that ended at the time since or later, and the running ones, by worker. It reads only the last
// ended attempts, as many as the number in most. If there were more, the result from is later than since, and the list has only the
// attempts that ended at from or later.
func RunsByWorker(ctx context.Context, r *runner.Runner, since time.Time, most int) (workers []WorkerRuns, from time.Time, err error) {
	return store(r).RunsByWorker(ctx, since, most)
}

// Related returns the ids of two groups of tasks: those that a task depends on, directly or through other tasks, and those that depend on
// it. The first element of each result has the direct ones, the second element has those with one task in between, and so on. The result
// more reports whether there may be further tasks.
func Related(ctx context.Context, r *runner.Runner, id int64, most int) (before, behind [][]int64, more bool, err error) {
	return store(r).Related(ctx, id, most)
}

// DependenciesAmong returns up to most dependencies between the tasks with the given ids.
func DependenciesAmong(ctx context.Context, r *runner.Runner, ids []int64, most int) ([]DependencyLink, error) {
	return store(r).DependenciesAmong(ctx, ids, most)
}

// Names returns the tasks with the given ids, by id. It sets only the id, the state, the job, the label, and arguments that are not long.
func Names(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
	return store(r).Names(ctx, ids)
}
