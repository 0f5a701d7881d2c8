package runner_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestRegistrationBesideOtherCallsIsSafe is for the race detector.
func TestRegistrationBesideOtherCallsIsSafe(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "s", Cron: "@yearly", Spec: quick.With(nil)}))
	r.Register(quick.Handler(runs))
	var all sync.WaitGroup
	unlessItWorks := func(f func()) {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					testkit.Contains(t, p.(string), "while Work runs")
				}
			}()
			f()
		})
	}
	unlessItWorks(func() { r.Register(ship.Handler(runs)) })
	unlessItWorks(func() {
		var through runner.Middleware = func(ctx context.Context, task jobs.Task,
			next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage, error) {
			return next(ctx, task)
		}
		r.Use(through)
	})
	unlessItWorks(func() { r.UseEnqueue(func(context.Context, *jobs.Spec) error { return nil }) })
	unlessItWorks(func() {
		x := jobs.Schedule{Name: "x", Cron: "@daily", Spec: quick.With(nil)}
		_ = r.OnTick(t.Context(), x, func(_ context.Context, _ time.Time, s jobs.Spec) (jobs.Spec, error) { return s, nil })
	})
	all.Go(func() { _, _ = admin.RunSchedule(t.Context(), r, "s") })
	all.Go(func() { _, _ = r.Enqueue(t.Context(), quick.With(nil)) })
	all.Go(func() { _ = r.Work(t.Context(), runner.WorkOptions{UntilEmpty: true}) })
	all.Wait()
}

func TestReadOnlyRunnerRefusesToWriteInTransactions(t *testing.T) {
	writer := runnerkit.Open(t, runner.Options{})
	handle := app(t, writer)
	task := runnerkit.Enqueue(t, writer, quick.With(nil))
	r, err := runner.Open(t.Context(), admin.Path(writer), runner.Options{ReadOnly: true})
	testkit.NoError(t, err)
	defer r.Close()
	tx := begin(t, handle)
	defer tx.Rollback()
	_, err = r.EnqueueTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrPermission)
	_, err = r.EnqueueManyTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrPermission)
	_, err = r.CancelTx(t.Context(), tx, []int64{task.ID}, runner.CancelOptions{})
	testkit.ErrorIs(t, err, jobs.ErrPermission)
	_, err = r.RetryTx(t.Context(), tx, []int64{task.ID}, runner.RetryOptions{})
	testkit.ErrorIs(t, err, jobs.ErrPermission)
	_, err = r.GetTx(t.Context(), tx, task.ID)
	testkit.NoError(t, err)
}

func TestEnqueueManyTxAddsAllOrNone(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	tx := begin(t, app(t, r))
	_, err := r.EnqueueManyTx(t.Context(), tx, quick.With(nil), quick.With(nil, jobs.DependsOn(999)), quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrNotFound, "nothing was enqueued")
	added, err := r.EnqueueManyTx(t.Context(), tx, quick.With(nil), quick.With(nil))
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", n, len(added))
}

// TestStaleTransactionIsToldApart reads in a transaction, lets the Runner
// write, and then enqueues in the transaction.
func TestStaleTransactionIsToldApart(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle, err := sql.Open("sqlite", admin.Path(r))
	testkit.NoError(t, err)
	defer handle.Close()
	tx := begin(t, handle)
	defer tx.Rollback()
	_, err = r.GetTx(t.Context(), tx, 1)
	testkit.ErrorIs(t, err, jobs.ErrNotFound)
	runnerkit.Enqueue(t, r, quick.With(nil))
	_, err = r.EnqueueTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrConflict, "read before another one wrote")
	if errors.Is(err, jobs.ErrBusy) {
		t.Errorf("got %v, want no ErrBusy, which is safe to try again", err)
	}
	explained, _ := errors.AsType[*jobs.Error](err)
	testkit.Equal(t, "code", explained.Code, errcode.StaleSnapshot)
	testkit.Contains(t, explained.Hint, "_txlock=immediate")
}

func TestAddNamesInvalidSpec(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	specs := []jobs.Spec{quick.With(nil), quick.With(nil, jobs.Queue("no queue"))}
	_, err := r.EnqueueMany(t.Context(), specs...)
	_, txErr := r.EnqueueManyTx(t.Context(), begin(t, app(t, r)), specs...)
	for _, err := range []error{err, txErr} {
		testkit.ErrorIs(t, err, jobs.ErrInvalid)
		if bad, ok := errors.AsType[*runner.SpecError](err); !ok || bad.Index != 1 {
			t.Errorf("got %v, want a SpecError with index 1", err)
		}
	}
	_, err = r.Enqueue(t.Context(), specs[1])
	if _, is := errors.AsType[*runner.SpecError](err); is || err == nil {
		t.Errorf("Enqueue: got %v, want an error without an index", err)
	}
}

func TestEnqueueReturnsTaskThatGetReturns(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	zone := time.FixedZone("x", 3600)
	for name, spec := range map[string]jobs.Spec{
		"plain": quick.With(nil),
		"options": quick.With(map[string]int{"n": 1}, jobs.Label("l"), jobs.Metadata(map[string]string{"k": "v"}),
			jobs.Timeout(time.Second)),
		"at": quick.With(nil, jobs.At(time.Now().Add(time.Hour+time.Nanosecond).In(zone)), jobs.ExpiresIn(time.Hour)),
		"in": quick.With(nil, jobs.In(time.Minute+time.Microsecond)),
		"unique": quick.With(nil, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour, Replace: true,
			States: []jobs.State{jobs.Failed, jobs.Completed}})),
		"command": jobs.Command(command.Shell("true")),
	} {
		task, err := r.Enqueue(t.Context(), spec)
		testkit.NoError(t, err)
		got := runnerkit.Get(t, r, task.ID)
		if !reflect.DeepEqual(task, got) {
			t.Errorf("%s: Enqueue returned\n%+v, and Get\n%+v", name, task, got)
		}
		tx := begin(t, handle)
		task, err = r.EnqueueTx(t.Context(), tx, spec)
		testkit.NoError(t, err)
		testkit.NoError(t, tx.Commit())
		if got = runnerkit.Get(t, r, task.ID); !task.Kept && !reflect.DeepEqual(task, got) {
			t.Errorf("%s: EnqueueTx returned\n%+v, and Get\n%+v", name, task, got)
		}
	}
}

// slow counts how often it is encoded.
type slow struct {
	encoded *int
	text    string
}

func (s slow) MarshalJSON() ([]byte, error) {
	*s.encoded++
	return []byte(`"` + s.text + `"`), nil
}

func TestHugeArgumentsAreEncodedOnceAndRefusedBySize(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	encoded := 0
	spec := jobs.Define[slow]("quick").With(slow{&encoded, strings.Repeat("x", 2<<20)})
	for range 2 {
		_, err := r.Enqueue(t.Context(), spec)
		testkit.ErrorIs(t, err, jobs.ErrInvalid, "args: 2097154 bytes; at most 1048576")
	}
	testkit.Equal(t, "encodings", encoded, 1)
	spec.Args = bytes.Repeat([]byte("{"), 2<<20) // the size is checked before the text is read
	_, err := r.Enqueue(t.Context(), spec)
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "args: 2097152 bytes; at most 1048576")
}

func TestTimesOfScheduleAreUTC(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	s := jobs.Schedule{Name: "s", Cron: "0 3 * * *", Zone: "Europe/Berlin", Spec: quick.With(nil)}
	testkit.NoError(t, r.SetSchedule(t.Context(), s))
	got, err := admin.Schedule(t.Context(), r, "s")
	testkit.NoError(t, err)
	testkit.Equal(t, "zone of the times", []*time.Location{got.NextAt.Location(), got.CreatedAt.Location()},
		[]*time.Location{time.UTC, time.UTC})
	testkit.Equal(t, "zone", got.Zone, "Europe/Berlin")
}

func TestErrorsNameTheirCause(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	_, err := r.Enqueue(t.Context(), quick.With(math.Inf(1)))
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		t.Errorf("got %v, want an error that wraps a *json.UnsupportedValueError", err)
	}
	handle, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "none.db")+"?mode=ro")
	testkit.NoError(t, err)
	defer handle.Close()
	_, err = runner.New(t.Context(), handle, runner.Options{})
	testkit.ErrorIs(t, err, jobs.ErrNoDatabase, "cannot be opened")
	testkit.NoError(t, r.Close())
	_, err = admin.Backup(t.Context(), r, admin.BackupOptions{Path: filepath.Join(t.TempDir(), "copy.db")})
	testkit.ErrorIs(t, err, jobs.ErrClosed, "the database is closed")
	_, err = admin.Backup(t.Context(), r, admin.BackupOptions{Writer: &strings.Builder{}})
	testkit.ErrorIs(t, err, jobs.ErrClosed)
}

func TestFuncRefusesTaskOfAnotherJob(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	welcome, receipt := jobs.DefineResult[string, string]("welcome"), jobs.DefineResult[string, int]("receipt")
	r.Register(welcome.Handler(func(context.Context, string) (string, error) { return "hi", nil }))
	key := jobs.UniqueWith("user-42", jobs.UniqueOptions{Global: true})
	runnerkit.Enqueue(t, r, welcome.With("ann", key))
	kept, err := r.Enqueue(t.Context(), receipt.With("ann", key))
	testkit.NoError(t, err)
	runnerkit.Drain(t, r)
	_, err = receipt.Result(r.Await(t.Context(), kept.ID))
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "task 1 is of job welcome, not receipt")
	_, err = receipt.Args(kept)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	got, err := welcome.Result(r.Await(t.Context(), kept.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, "result", got, "hi")
}
