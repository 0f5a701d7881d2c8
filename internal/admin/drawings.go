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

// RunsByWorker returns the running attempts, and the attempts that ended at the time since or later, grouped by worker. It reads at most as
// many ended attempts as most says. If there are more, it returns the latest ones, and the result from is the time at which this shorter
// list begins.
func RunsByWorker(ctx context.Context, r *runner.Runner, since time.Time, most int) (workers []WorkerRuns, from time.Time, err error) {
	return store(r).RunsByWorker(ctx, since, most)
}

// Related returns the ids of the tasks that a task depends on (before), and of those that depend on it (behind). The first element of each
// list has the direct dependencies, the second element has the dependencies of these tasks, and so on. The result more reports whether
// there may be further tasks.
func Related(ctx context.Context, r *runner.Runner, id int64, most int) (before, behind [][]int64, more bool, err error) {
	return store(r).Related(ctx, id, most)
}

// DependenciesAmong returns the dependencies between the tasks with the given ids, up to the number in most.
func DependenciesAmong(ctx context.Context, r *runner.Runner, ids []int64, most int) ([]DependencyLink, error) {
	return store(r).DependenciesAmong(ctx, ids, most)
}

// Names returns the tasks with the given ids. It sets only the id, the state, the job, the label, and the arguments if they are short.
func Names(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
	return store(r).Names(ctx, ids)
}
