// Package runnertest helps to test programs that use package runner. A test
// gets a real database in a temporary directory and a clock that it advances
// itself. Tasks run when the test calls RunDue.
//
//	package main
//
//	import (
//		"context"
//		"testing"
//		"time"
//
//		"example.com/runner/jobs"
//		"example.com/runner/runner"
//		"example.com/runner/runner/runnertest"
//	)
//
//	type Email struct{ To string }
//
//	var SendEmail = jobs.Define[Email]("email.send")
//
//	// signUp is the code under test.
//	func signUp(ctx context.Context, r *runner.Runner, to string) error {
//		_, err := r.Enqueue(ctx, SendEmail.With(Email{To: to}, jobs.In(10*time.Minute)))
//		return err
//	}
//
//	func TestWelcomeMailIsSentLater(t *testing.T) {
//		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
//			var sent []string
//			r.Register(SendEmail.Handler(func(_ context.Context, mail Email) error {
//				sent = append(sent, mail.To)
//				return nil
//			}))
//			if err := signUp(t.Context(), r, "ann@example.com"); err != nil {
//				t.Fatal(err)
//			}
//			if got := runnertest.Enqueued(t, r, SendEmail); len(got) != 1 {
//				t.Errorf("got %v, want one mail", got)
//			}
//			runnertest.Advance(t, 10*time.Minute)
//			runnertest.RunDue(t, r)
//			if len(sent) != 1 {
//				t.Errorf("got mails to %v, want one", sent)
//			}
//		})
//	}
//
// Only the time is fake: the database, its transactions and the worker are
// those of production. So a test can also simulate what a program must survive.
// Crash and CrashAfterClaim simulate a worker that dies with its tasks, in a
// function or before it, and Lose simulates one that hangs. FailBeforeCommit
// and FailAfterCommit make a commit fail. OpenDB opens a handle for the tables
// of the program, whose commits can fail in the same way.
//
// The clock of a test stands still while a goroutine waits for a network
// connection. So replace the server that the program calls, and not only its
// address: give the program an interface, or an http.Client whose Transport
// calls a handler. docs/embedding.md has such a Transport.
package runnertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/internal/engine"
)

// Run runs a test in a bubble of testing/synctest with a Runner of its own. The
// clock of a bubble begins at 1 January 2000. The clock stands still while any
// goroutine of the bubble runs, and jumps to the next timer when all these
// goroutines wait. So a test can wait for an hour without a delay. Goroutines
// that the test has started must have ended when the test returns. The test
// must use only the t that it gets: the program crashes if the bubble is the
// first to call the method Context of the outer t. Commands cannot run in a
// bubble, so register functions. The options are those of New.
//
// A goroutine that waits for the network does not count as waiting: the clock
// stands still, and Advance and the end of the test hang. The listener of a
// net/http/httptest.Server waits for the network all the time, and so does an
// idle connection of http.DefaultClient.
func Run(t *testing.T, test func(t *testing.T, r *runner.Runner), options ...runner.Options) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, New(t, options...))
	})
}

// New returns a Runner over a database in a temporary directory. The end of the
// test closes it. A handler that panics fails the test. New accepts at most one
// runner.Options. The Runner does not watch for other processes. Its writes are
// not fsynced, because New replaces Options.Sync by runner.SyncNormal. Only the
// value runner.SyncFlash stays: the Runner then collects writes, as it does for
// runner.Open. Like that, it gives its tables no prefix: for SQL that names the
// tables of runner.New, set Options.Prefix to "runner_". With Options.MaxBytes,
// the size of the file is read again only after the clock has advanced by a
// millisecond.
func New(t testing.TB, options ...runner.Options) *runner.Runner {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "test.db"), options)
}

// Reopen returns another Runner over the database of r, such as that of the
// next version of a program. It is like a Runner of New otherwise.
func Reopen(t testing.TB, r *runner.Runner, options ...runner.Options) *runner.Runner {
	t.Helper()
	return open(t, db.Of(r).Path(), options)
}

func open(t testing.TB, path string, options []runner.Options) *runner.Runner {
	t.Helper()
	o := only(t, options)
	if o.Sync != runner.SyncFlash {
		o.Sync = runner.SyncNormal
	}

	ctx := db.With(t.Context(), func(o *db.Options) { o.Alone, o.Driver = true, driverName })
	r, err := runner.Open(ctx, path, o)
	if err != nil {
		t.Fatalf("runnertest: %v", err)
	}

	k := &kit{running: map[runningTask]bool{}}
	kits.Store(r, k)
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (
		json.RawMessage, error) {
		k.start(task)
		orderAccess()
		defer func() {
			orderAccess()
			p := recover()
			if k.end(task) {
				if err := Lose(ctx, r); err != nil && !errors.Is(err, jobs.ErrLost) {
					t.Errorf("runnertest: Crash: %v", err)
				}
			} else if p != nil {
				t.Errorf("runnertest: task %d (%s) panics: %v\n%s", task.ID, task.Job, p, debug.Stack())
				panic(p)
			}
		}()

		return next(ctx, task)
	})
	t.Cleanup(func() {
		kits.Delete(r)
		forget(db.Of(r).Path())
		if err := r.Close(); err != nil {
			t.Errorf("runnertest: %v", err)
		}
	})
	return r
}

// only returns the only element of options, or the zero value.
func only[O any](t testing.TB, options []O) (o O) {
	t.Helper()
	if len(options) > 1 {
		t.Fatalf("runnertest: more than one %T", o)
	}
	for _, o = range options {
	}
	return o
}

// kit records the tasks that one Runner has started. New makes a kit for each
// Runner.
type kit struct {
	mu      sync.Mutex
	started []int64
	running map[runningTask]bool // has a key for each running attempt; the value is true if Crash has ended it
}

// runningTask identifies an attempt.
type runningTask struct{ id, generation int64 }

var kits sync.Map // maps each *runner.Runner to its *kit

// record notes the start of an attempt. The worker calls it in the order of the
// starts, before the goroutines of the attempts run side by side.
func (k *kit) record(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.started = append(k.started, id)
}

func (k *kit) start(task jobs.Task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[runningTask{task.ID, task.GenerationID}] = false
}

// end removes the attempt of a task from k.running. It reports whether Crash
// has ended this attempt.
func (k *kit) end(task jobs.Task) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	attempt := runningTask{task.ID, task.GenerationID}
	defer delete(k.running, attempt)
	return k.running[attempt]
}

// crash marks all running attempts as ended by Crash.
func (k *kit) crash() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for attempt := range k.running {
		k.running[attempt] = true
	}
}

// Advance advances the clock of a bubble of Run by d. Timers that are due in
// this time fire in their order. Tasks that become due run at once if the test
// runs Work in another goroutine. Otherwise they run in the next RunDue.
//
// Advance does not wait for d, but it takes some real time: about 0.6 ms for
// each attempt. For each hour of d it takes 0.1 s if Work runs, and 0.3 s if
// ConsumeFinished runs, too. With the race detector, Advance takes several
// times as long, unless you exclude SQLite from the detector: go test -race
// -gcflags=modernc.org/sqlite/lib=-race=false.
func Advance(t testing.TB, d time.Duration) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil { // synctest.Wait panics outside of a bubble
			t.Fatalf("runnertest: Advance: %v: use Run", p)
		}
	}()

	synctest.Wait()
	orderAccess()
	time.Sleep(d)
	synctest.Wait()
	orderAccess()
}

// orderAccess locks and unlocks a mutex, so that the race detector knows the
// order of memory accesses: first those of the test before an Advance, then
// those of the functions during this Advance, and then those of the test after
// this Advance. So a test can share a variable with its functions without a
// lock.
func orderAccess() {
	accessMu.Lock()
	defer accessMu.Unlock()
}

var accessMu sync.Mutex

// RunDue runs the due tasks and the tasks that become due in the meantime. It
// returns the tasks that it ran, in their present state: one element for each
// attempt, in the order of the starts. It does not run tasks that are due
// later, such as tasks that wait for their next attempt. RunDue waits, and the
// fake clock advances, if a rate limit delays a due task, or if the task waits
// for a full call (jobs.Handler.BulkWait).
//
// RunDue also enqueues the ticks of schedules that are due, including ticks
// during such a wait. If the tasks of a schedule wait for a full call, each
// tick may begin another wait, so the clock may advance by hours. In such a
// test run Work in another goroutine, and call Advance. A test that counts
// ticks should do the same: after an Advance without Work, RunDue enqueues one
// task for all missed ticks.
//
// RunDue accepts at most one runner.WorkOptions. Two defaults differ from those
// of Runner.Work: one attempt runs at a time, so that the order of tasks is
// certain, and finished tasks are kept for ever. If WorkOptions.Keep is set,
// RunDue deletes old tasks when it begins. It deletes none if no worker ran for
// more than a day: see admin.ResumeDeletion.
func RunDue(t testing.TB, r *runner.Runner, options ...runner.WorkOptions) []jobs.Task {
	t.Helper()
	o := only(t, options)
	o.Concurrency, o.Keep, o.KeepFailed = cmp.Or(o.Concurrency, 1), cmp.Or(o.Keep, -1), cmp.Or(o.KeepFailed, -1)
	o.UntilEmpty = true
	found, ok := kits.Load(r)
	if !ok {
		t.Fatal("runnertest: RunDue is for a Runner of New or Run")
	}

	k := found.(*kit)
	k.mu.Lock()
	k.started = nil
	k.mu.Unlock()
	if err := r.Work(engine.NoteStarts(t.Context(), k.record), o); err != nil {
		t.Fatalf("runnertest: RunDue: %v", err)
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	ran := make([]jobs.Task, len(k.started))
	for i, id := range k.started {
		var err error
		if ran[i], err = r.Get(t.Context(), id); err != nil { // the function may have deleted its own task
			ran[i] = jobs.Task{ID: id}
		}
	}

	return ran
}

// Function is the parameter of Enqueued. Both jobs.Func and jobs.ResultFunc
// implement it.
type Function[In any] interface {
	Job() string
	Args(jobs.Task) (In, error)
}

// Enqueued returns the inputs of the unfinished tasks of a function, oldest
// first.
func Enqueued[In any](t testing.TB, r *runner.Runner, f Function[In]) []In {
	t.Helper()
	tasks, err := r.List(t.Context(), jobs.Filter{Jobs: []string{f.Job()}, States: taskspec.Unfinished(), OldestFirst: true})
	if err != nil {
		t.Fatalf("runnertest: Enqueued: %v", err)
	}

	inputs := make([]In, len(tasks))
	for i, task := range tasks {
		if inputs[i], err = f.Args(task); err != nil {
			t.Fatal(fmt.Errorf("runnertest: task %d: %w", task.ID, err))
		}
	}

	return inputs
}
