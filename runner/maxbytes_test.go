package runner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

const mib = 1 << 20

// sample is a job whose tasks have 20 KiB of arguments.
var sample = jobs.Define[string]("sample")

func openBounded(t *testing.T, options runner.Options) *runner.Runner {
	t.Helper()
	options.MaxBytes = cmp.Or(options.MaxBytes, 2*mib)
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

// fileSize closes r and returns the size of its file.
func fileSize(t *testing.T, r *runner.Runner) int64 {
	t.Helper()
	testkit.NoError(t, r.Close())
	info, err := os.Stat(admin.Path(r))
	testkit.NoError(t, err)
	return info.Size()
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
	testkit.Between(t, "bytes of the file", fileSize(t, r), 1*mib, 3*mib)
}

func TestBoundedFileRefusesTasksUntilSomeHaveFinished(t *testing.T) {
	r := openBounded(t, runner.Options{})
	var err error
	n := 0
	for ; err == nil && n < 400; n++ {
		_, err = r.Enqueue(t.Context(), sample.With(someKiB))
	}
	testkit.ErrorIs(t, err, jobs.ErrFull, "the database has its full size", "Options.MaxBytes allows 2 MiB")
	full, _ := errors.AsType[*jobs.Error](err)
	testkit.Equal(t, "code", full.Code, "file_bound")
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

// addLarge adds tasks with 1 MiB of arguments until one is refused, up to 20.
func addLarge(t *testing.T, r *runner.Runner) (n int, err error) {
	t.Helper()
	for large := strings.Repeat("x", mib-100); err == nil && n < 20; n++ {
		_, err = r.Enqueue(t.Context(), sample.With(large))
	}
	return n, err
}

func TestManySmallTasksMakeRoomForLargeOnes(t *testing.T) {
	r := openBounded(t, runner.Options{MaxBytes: 4 * mib})
	for range 5 {
		many, err := r.EnqueueMany(t.Context(), slices.Repeat([]jobs.Spec{sample.With("x", jobs.In(time.Hour))}, 1000)...)
		testkit.NoError(t, err)
		var ids []int64
		for _, one := range many {
			ids = append(ids, one.ID)
		}
		_, err = r.Cancel(t.Context(), ids, runner.CancelOptions{})
		testkit.NoError(t, err)
	}

	n, err := addLarge(t, r)
	testkit.ErrorIs(t, err, jobs.ErrFull)
	testkit.Between(t, "number of large tasks", n, 2, 7)
	testkit.Between(t, "bytes of the file", fileSize(t, r), 2*mib, 7*mib)
}

func TestDroppedTasksMakeRoomAtOnce(t *testing.T) {
	r := openBounded(t, runner.Options{MaxBytes: 4 * mib, DropOldest: true})
	_, err := r.EnqueueMany(t.Context(), slices.Repeat([]jobs.Spec{sample.With("x")}, 5000)...)
	testkit.NoError(t, err)
	_, err = addLarge(t, r)
	testkit.NoError(t, err)
	testkit.Between(t, "number of waiting tasks", len(stored(t, r, jobs.Pending)), 1, 6)
	testkit.Between(t, "bytes of the file", fileSize(t, r), 2*mib, 7*mib)
}

func TestBoundedFileShrinksStepByStep(t *testing.T) {
	r := runnerkit.OpenAt(t, filepath.Join(t.TempDir(), "long.db"), runner.Options{})
	_, err := r.EnqueueMany(t.Context(), slices.Repeat([]jobs.Spec{sample.With(someKiB)}, 500)...) // 10 MiB
	testkit.NoError(t, err)
	_, err = r.Cancel(t.Context(), stored(t, r), runner.CancelOptions{})
	testkit.NoError(t, err)
	testkit.NoError(t, r.Close())

	r = runnerkit.OpenAt(t, admin.Path(r), runner.Options{MaxBytes: 2 * mib})
	before := 500
	for before > 120 {
		runnerkit.Enqueue(t, r, sample.With(someKiB))
		left := len(stored(t, r, jobs.Cancelled))
		testkit.Between(t, "tasks that a call deletes", before-left, 10, 100)
		before = left
	}
}

// openOverfull opens a file of 3 MiB with a bound of 2 MiB. It has a task of
// each spec, and then 150 tasks that wait.
func openOverfull(t *testing.T, options runner.Options, first ...jobs.Spec) *runner.Runner {
	t.Helper()
	r := runnerkit.OpenAt(t, filepath.Join(t.TempDir(), "full.db"), runner.Options{})
	_, err := r.EnqueueMany(t.Context(), append(first, slices.Repeat([]jobs.Spec{sample.With(someKiB)}, 150)...)...)
	testkit.NoError(t, err)
	testkit.NoError(t, r.Close())
	options.MaxBytes = 2 * mib
	return runnerkit.OpenAt(t, admin.Path(r), options)
}

// TestHolderOfKeyNeedsNoRoom repeats the call that has added the oldest task,
// in each way to add tasks.
func TestHolderOfKeyNeedsNoRoom(t *testing.T) {
	spec := sample.With("x", jobs.Unique("k"))
	for _, drop := range []bool{false, true} {
		r := openOverfull(t, runner.Options{DropOldest: drop}, spec)
		handle, err := runner.OpenDB(t.Context(), admin.Path(r))
		testkit.NoError(t, err)
		defer handle.Close()

		one, err := r.Enqueue(t.Context(), spec)
		testkit.NoError(t, err)
		testkit.Equal(t, "id from Enqueue", one.ID, 1)
		many, err := r.EnqueueMany(t.Context(), spec, spec)
		testkit.NoError(t, err)
		want := jobs.Enqueued{ID: 1, Kept: true}
		testkit.Equal(t, "result of EnqueueMany", many, []jobs.Enqueued{want, want})

		tx, err := handle.BeginTx(t.Context(), nil)
		testkit.NoError(t, err)
		one, err = r.EnqueueTx(t.Context(), tx, spec)
		testkit.NoError(t, err)
		testkit.Equal(t, "id from EnqueueTx", one.ID, 1)
		testkit.NoError(t, tx.Commit())
		testkit.Len(t, "waiting tasks", stored(t, r, jobs.Pending), 151)
	}
}

// TestNoTaskOfCallIsDropped adds tasks in a call that first gets and replaces
// the two oldest tasks.
func TestNoTaskOfCallIsDropped(t *testing.T) {
	kept := sample.With("x", jobs.Unique("kept"))
	replaced := sample.With("x", jobs.UniqueWith("replaced", jobs.UniqueOptions{Replace: true}))
	r := openOverfull(t, runner.Options{DropOldest: true}, kept, replaced)
	done, err := r.EnqueueMany(t.Context(), append([]jobs.Spec{kept, replaced}, slices.Repeat([]jobs.Spec{sample.With(someKiB)}, 40)...)...)
	testkit.NoError(t, err)
	testkit.Equal(t, "results for the held keys", done[:2], []jobs.Enqueued{{ID: 1, Kept: true}, {ID: 2, Replaced: true}})
	for id := range int64(2) {
		testkit.Equal(t, "state of a task that holds a key", runnerkit.Get(t, r, id+1).State, jobs.Pending)
	}

	before := stored(t, r, jobs.Pending)
	_, err = r.EnqueueMany(t.Context(), slices.Repeat([]jobs.Spec{sample.With(someKiB)}, 200)...)
	testkit.ErrorIs(t, err, jobs.ErrFull, "nothing was written")
	testkit.Equal(t, "waiting tasks after a call that is larger than the bound", stored(t, r, jobs.Pending), before)
}

// TestDamagedRowKeepsNoOtherFromMakingRoom has a task that no statement can
// change, as the oldest.
func TestDamagedRowKeepsNoOtherFromMakingRoom(t *testing.T) {
	r := openOverfull(t, runner.Options{DropOldest: true}, sample.With("x"))
	handle, err := runner.OpenDB(t.Context(), admin.Path(r))
	testkit.NoError(t, err)
	defer handle.Close()
	refuse := func(what string, id int64) {
		_, err := handle.ExecContext(t.Context(), fmt.Sprintf(`CREATE TRIGGER refuse%d BEFORE %s ON tasks WHEN OLD.id = %d
			BEGIN SELECT RAISE(ABORT, 'bad row'); END`, id, what, id))
		testkit.NoError(t, err)
	}

	refuse("UPDATE", 1)
	refuse("DELETE", 3)
	for range 200 {
		runnerkit.Enqueue(t, r, sample.With(someKiB))
	}
	testkit.Equal(t, "state of a task that can't be cancelled", runnerkit.Get(t, r, 1).State, jobs.Pending)
	testkit.Equal(t, "state of a task that can't be deleted", runnerkit.Get(t, r, 3).State, jobs.Cancelled)
	testkit.Between(t, "number of waiting tasks", len(stored(t, r, jobs.Pending)), 40, 150)
}

func TestBoundInTransactionOfProgram(t *testing.T) {
	r := openBounded(t, runner.Options{})
	handle, err := runner.OpenDB(t.Context(), admin.Path(r))
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
