package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	// Run is an attempt that has ended or is still running.
	Run = db.Run
	// WorkerRuns is a worker with the attempts that it ran.
	WorkerRuns = db.WorkerRuns
	// DependencyLink says that task Task depends on task On. Both fields are ids.
	DependencyLink = db.DependencyLink
)

// RunsByWorker returns the running attempts, and the attempts that ended at or after the time in the parameter "since", grouped by worker.
// It reads the attempts with several SQL statements; the parameter "most" is the maximum number of rows of each statement. If a statement
// reaches this maximum, the attempts that ended first are missing. The list has all attempts that ended at or after the time in the result
// "from". If no attempt is missing, this time is the same as "since".
func RunsByWorker(ctx context.Context, r *runner.Runner, since time.Time, most int) (workers []WorkerRuns, from time.Time, err error) {
	return store(r).RunsByWorker(ctx, since, most)
}

// Related returns the ids of the tasks that a task depends on, in the result "before", and of the tasks that depend on it, in the result
// "behind". The first element of each result has the tasks with a direct dependency. The second element has the tasks with one task in
// between, and so on. The parameter "most" limits the number of ids in each result. The result "more" reports whether there may be further
// tasks.
func Related(ctx context.Context, r *runner.Runner, id int64, most int) (before, behind [][]int64, more bool, err error) {
	return store(r).Related(ctx, id, most)
}

// DependenciesAmong returns the dependencies between the tasks with the given ids. The parameter "most" limits their number.
func DependenciesAmong(ctx context.Context, r *runner.Runner, ids []int64, most int) ([]DependencyLink, error) {
	return store(r).DependenciesAmong(ctx, ids, most)
}

// Names returns the tasks with the given ids. It sets only the id, the state, the job, the label, and the arguments if they are short.
func Names(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
	return store(r).Names(ctx, ids)
}
