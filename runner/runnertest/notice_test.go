package runnertest_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestWorkerSeesCommitOfProgramAtOnce checks that a worker notices the commits
// of the program's own transactions at once. The Runner of the test does not
// watch its file, so it must notice them in another way.
func TestWorkerSeesCommitOfProgramAtOnce(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		handle := runnertest.OpenDB(t, r)
		began := time.Now()
		var started, cancelled time.Duration
		wait := jobs.Define[string]("wait")
		r.Register(wait.Handler(func(ctx context.Context, _ string) error {
			started = time.Since(began)
			<-ctx.Done()
			cancelled = time.Since(began)
			return context.Cause(ctx)
		}))
		stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
		defer stop()
		runnertest.Advance(t, 3*time.Second)
		var task jobs.Task
		testkit.NoError(t, inTransaction(t.Context(), handle, func(tx *sql.Tx) (err error) {
			task, err = r.EnqueueTx(t.Context(), tx, wait.With(""))
			return err
		}))
		synctest.Wait()
		runnertest.Advance(t, 4*time.Second)
		testkit.NoError(t, inTransaction(t.Context(), handle, func(tx *sql.Tx) error {
			_, err := r.CancelTx(t.Context(), tx, []int64{task.ID}, runner.CancelOptions{})
			return err
		}))
		synctest.Wait()
		runnertest.Advance(t, 30*time.Second)
		testkit.Equal(t, "start after the begin of the test", started.Round(time.Second), 3*time.Second)
		testkit.Equal(t, "end after the begin of the test", cancelled.Round(time.Second), 7*time.Second)
	})
}
