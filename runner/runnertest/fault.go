package runnertest

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// CrashAfterClaim claims at most n due tasks and returns them. It acts like a
// worker whose machine crashes right after the claim. It calls no function, so
// the tasks stay in state running. The next RunDue, or the next Work, takes
// over these tasks at once. Each task then has one more loss, and a task with
// more losses than MaxLosses fails. Before they are taken over, a further call
// of CrashAfterClaim does not claim these tasks again. To test a task that
// fails after several losses, call Crash in its function, or set
// jobs.MaxLosses(0).
func CrashAfterClaim(t testing.TB, r *runner.Runner, n int) []jobs.Task {
	t.Helper()
	var claimed []jobs.Task
	err := withWorker(r, func(w *db.Worker) error {
		claim := db.Claim{Free: n, Lease: time.Minute, Idle: true}
		result, err := w.Cycle(context.Background(), db.Cycle{Now: time.Now(), Look: true, Claim: claim})
		claimed = result.Claimed
		return err
	})
	if err != nil {
		t.Fatalf("runnertest: CrashAfterClaim: %v", err)
	}
	return claimed
}

// Crash ends the attempt of the handler with the context ctx, as kill -9 of the
// program would at this point. Crash does not return: the handler then only
// runs its deferred calls. Let these calls roll back open transactions, as the
// database does after a crash. Committed steps and transactions stay. The next
// attempt begins at once, in the same RunDue, and the task has one more loss.
//
// Call Crash on the goroutine of the function, for instance in a fake of a
// service that the function calls. In a bulk function, pass the
// BulkTask.Context of any of its tasks: the whole batch is lost. Other
// handlers that run at that time lose their tasks, too, and the database
// refuses their results. Crash panics outside of an attempt of r.
func Crash(ctx context.Context, r *runner.Runner) {
	found, ok := kits.Load(r)
	if _, inTask := runner.TaskFromContext(ctx); !ok || !inTask {
		panic("runnertest: Crash needs the context of an attempt of a Runner of New or Run; in a batch that is BulkTask.Context")
	}
	found.(*kit).crash()
	runtime.Goexit()
}

// Lose takes the task away from the handler with the context ctx, as if the
// worker hung and another worker took the task over. The task waits for another
// worker. The database refuses all later writes of this attempt, such as its
// outcome, a FinishTx or a step. Call Lose inside a function at the point where
// the worker should fail, such as after the effect of the function and before
// its return. The function goes on, unlike after Crash. Its context ends at the
// next heartbeat of the worker, by default at most 10 s later. Lose returns an
// error outside of an attempt, or if the attempt has lost its task already.
func Lose(ctx context.Context, r *runner.Runner) error {
	task, ok := runner.TaskFromContext(ctx)
	if !ok {
		return errors.New("runnertest: Lose needs the context of an attempt; in a batch that is BulkTask.Context")
	}

	return withWorker(r, func(w *db.Worker) error {
		leases, err := w.Leases(context.Background())
		if err != nil {
			return err
		}

		for _, lease := range leases {
			if lease.ClaimID == (db.ClaimID{ID: task.ID, GenerationID: task.GenerationID}) {
				revoked, err := w.Revoke(context.Background(), []db.Lease{lease})
				if err == nil {
					_, err = w.Reap(context.Background(), revoked, time.Now())
				}
				db.Of(r).Notify()
				return err
			}
		}

		return jobs.ErrLost
	})
}

// withWorker calls do with a new worker on the file of r. The worker's record
// has an old boot id, so all others conclude that its machine has rebooted and
// that it's dead.
func withWorker(r *runner.Runner, do func(*db.Worker) error) error {
	store, err := db.Open(context.Background(), db.Of(r).Path(), db.Options{Normal: true})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()

	var list []db.ClaimJob
	for _, job := range db.InsideOf(r).Jobs() {
		list = append(list, db.ClaimJob{Job: job, MaxAttempts: taskspec.FuncAttempts})
	}

	host, _ := os.Hostname()
	w, err := store.Register(context.Background(), db.WorkerInfo{ID: db.NewWorkerID(), Name: "runnertest", Host: host, BootID: "before",
		UID: os.Getuid(), Slots: 1, Jobs: db.InsideOf(r).Jobs(), Lease: time.Minute, StartedAt: time.Now()}, list)
	if err != nil {
		return err
	}

	return do(w)
}

// ErrInjected is the error of a write that FailBeforeCommit or FailAfterCommit
// makes fail.
var ErrInjected = errors.New("runnertest: injected")

// FailBeforeCommit makes the next commit return ErrInjected and change nothing,
// as on a full disk. The next commit is the next write of r, or the commit of a
// transaction on a handle of OpenDB. While Work runs, the next commit may be a
// write of the worker, which tries it again.
func FailBeforeCommit(t testing.TB, r *runner.Runner) { t.Helper(); inject(t, r, 1, true) }

// FailAfterCommit makes the next commit return ErrInjected although it took
// effect, as after a broken connection or a timeout. The next commit is the
// next write of r, or the commit of a transaction on a handle of OpenDB. So an
// Enqueue adds a task that its caller does not know about, and a transaction
// with EnqueueTx adds the task together with the rows of the program. A unique
// key with UniqueOptions.For makes a second call safe. After a commit with
// FinishTx the task is completed, even if the function returns the error. While
// Work runs, the next commit may be a write of the worker, which detects that
// its write was committed.
func FailAfterCommit(t testing.TB, r *runner.Runner) { t.Helper(); inject(t, r, 1, false) }

// fault makes a commit fail.
type fault struct {
	commit int  // number of the commit that fails; 1 for the next one
	before bool // whether the commit fails before it takes effect
}

// inject makes the n-th commit from now fail.
func inject(t testing.TB, r *runner.Runner, n int, before bool) {
	t.Helper()
	if _, ok := kits.Load(r); !ok {
		t.Fatal("runnertest: faults are for a Runner of New or Run")
	}
	faults.mu.Lock()
	defer faults.mu.Unlock()
	faults.next[db.Of(r).Path()] = fault{n, before}
}

// faults maps the path of a database to the next fault that inject has set for
// this database.
var faults = struct {
	mu   sync.Mutex
	next map[string]fault
}{next: map[string]fault{}}

func forget(path string) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	delete(faults.next, path)
}

// take counts a commit of the file at path. It reports whether this commit must
// fail, and whether it must do so before it takes effect.
func take(path string) (before, fails bool) {
	faults.mu.Lock()
	defer faults.mu.Unlock()

	next, fails := faults.next[path]
	if next.commit--; fails && next.commit > 0 {
		faults.next[path] = next
		return false, false
	}
	delete(faults.next, path)
	return next.before, fails
}
