package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

const mib = 1 << 20

// sample is a job whose tasks have 20 KiB of arguments.
var sample = jobs.Define[string]("sample")

func openBounded(t *testing.T, options runner.Options) *runner.Runner {
	t.Helper()
	options.MaxBytes = 2 * mib
	r := runnerkit.OpenAt(t, filepath.Join(t.TempDir(), "edge.db"), options)
	r.Register(sample.Handler(func(context.Context, string) error { return nil }))
	return r
}

var someKiB = strings.Repeat("x", 20<<10)

// stored returns the ids of the tasks in these states, oldest first.
func stored(t *testing.T, r *runner.Runner, states ...jobs.State) (ids []int64) {
	t.Helper()
	tasks, err := r.List(t.Context(), jobs.Filter{States: states, OldestFirst: true})
	testkit.NoError(t, err)
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	return ids
}

func TestOldestFinishedTasksMakeRoomInBoundedFile(t *testing.T) {
	r := openBounded(t, runner.Options{})
	for range 12 { // 5 MiB
		for range 20 {
			runnerkit.Enqueue(t, r, sample.With(someKiB))
		}
		runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 1}) // the tasks end in the order of their ids
	}

	left := stored(t, r)
	testkit.Between(t, "number of tasks that are left", len(left), 40, 100)
	testkit.Equal(t, "last task", left[len(left)-1], 240)
	testkit.Equal(t, "tasks between the first and the last that are left", int(240-left[0])+1, len(left))
	testkit.NoError(t, r.Close())
	info, err := os.Stat(r.Path())
	testkit.NoError(t, err)
	testkit.Between(t, "bytes of the file", info.Size(), 1*mib, 3*mib)
}

func TestBoundedFileRefusesTasksUntilSomeHaveFinished(t *testing.T) {
	r := openBounded(t, runner.Options{})
	var err error
	n := 0
	for ; err == nil && n < 400; n++ {
		_, err = r.Enqueue(t.Context(), sample.With(someKiB))
	}
	testkit.ErrorIs(t, err, jobs.ErrFull, "the database has its full size", "Options.MaxBytes allows 2 MiB")
	testkit.Len(t, "tasks in the file", stored(t, r, jobs.Pending), n-1)
	testkit.Between(t, "number of tasks", n-1, 40, 150)

	many := make([]jobs.Spec, 50)
	for i := range many {
		many[i] = sample.With(someKiB)
	}
	_, err = r.EnqueueMany(t.Context(), many...)
	testkit.ErrorIs(t, err, jobs.ErrFull)
	testkit.Len(t, "tasks after a refused batch", stored(t, r), n-1)

	runnerkit.Drain(t, r)
	runnerkit.Enqueue(t, r, sample.With(someKiB))
}

func TestBoundedFileDropsOldestWaitingTasks(t *testing.T) {
	r := openBounded(t, runner.Options{DropOldest: true})
	for range 400 {
		runnerkit.Enqueue(t, r, sample.With(someKiB))
	}

	left := stored(t, r, jobs.Pending)
	testkit.Between(t, "number of waiting tasks", len(left), 40, 150)
	testkit.Equal(t, "last task", left[len(left)-1], 400)
	testkit.Equal(t, "tasks between the first and the last that are left", int(400-left[0])+1, len(left))
	for _, id := range stored(t, r, jobs.Cancelled) {
		testkit.Contains(t, runnerkit.Get(t, r, id).Error, "dropped: the database has its full size")
		testkit.Equal(t, "whether it was added before those that wait", id < left[0], true)
	}
}

func TestBoundInTransactionOfProgram(t *testing.T) {
	r := openBounded(t, runner.Options{})
	handle, err := runner.OpenDB(t.Context(), r.Path())
	testkit.NoError(t, err)
	defer handle.Close()
	for err == nil {
		_, err = r.Enqueue(t.Context(), sample.With(someKiB))
	}
	tx, err := handle.BeginTx(t.Context(), nil)
	testkit.NoError(t, err)
	_, err = r.EnqueueTx(t.Context(), tx, sample.With(someKiB))
	testkit.ErrorIs(t, err, jobs.ErrFull)
	testkit.NoError(t, tx.Rollback())
}

func TestInvalidBounds(t *testing.T) {
	for path, options := range map[string]runner.Options{
		filepath.Join(t.TempDir(), "small.db"): {MaxBytes: mib - 1},
		filepath.Join(t.TempDir(), "drop.db"):  {DropOldest: true},
		"postgres://ann@localhost/app":         {MaxBytes: mib},
	} {
		_, err := runner.Open(t.Context(), path, options)
		testkit.ErrorIs(t, err, jobs.ErrInvalid, "MaxBytes")
	}
}
