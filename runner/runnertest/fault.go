package runnertest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver that wrapper wraps

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// CrashAfterClaim claims at most n due tasks and returns them. It acts like a worker whose machine crashes right after the claim. It calls
// no function, so the tasks stay in state running. The next Drain, or the next Work, takes over these tasks at once. Each of them then has
// one more loss, and a task with more losses than MaxLosses fails.
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

// Lose takes the task away from the attempt that runs with ctx, as if the worker hung and another worker took the task over. The task waits
// for another worker. The database refuses all later writes of this attempt, such as its end, a FinishTx or a step. Call Lose inside a
// function at the point where the worker should fail, such as after the effect of the function and before its return. Lose returns an error
// outside of an attempt, or if the attempt has lost its task already.
func Lose(ctx context.Context, r *runner.Runner) error {
	task, ok := runner.TaskFrom(ctx)
	if !ok {
		return errors.New("runnertest: Lose needs the context of an attempt; in a batch that is BatchTask.Context")
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
				return err
			}
		}
		return jobs.ErrLost
	})
}

// withWorker registers another worker on the same file and calls the function do with it. The other worker has an old boot id. So other
// workers conclude that its machine has rebooted and that it is dead.
func withWorker(r *runner.Runner, do func(*db.Worker) error) error {
	store, err := db.Open(context.Background(), r.Path(), db.Options{Normal: true})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	var list []db.ClaimJob
	for _, job := range r.Jobs() {
		list = append(list, db.ClaimJob{Job: job, MaxAttempts: jobs.FuncAttempts})
	}
	host, _ := os.Hostname()
	w, err := store.Register(context.Background(), db.WorkerInfo{ID: db.NewWorkerID(), Name: "runnertest", Host: host, BootID: "before",
		UID: os.Getuid(), Slots: 1, Lease: time.Minute, StartedAt: time.Now()}, list)
	if err != nil {
		return err
	}
	return do(w)
}

// ErrInjected is the error of a write that FailBeforeCommit or FailAfterCommit makes fail.
var ErrInjected = errors.New("runnertest: injected")

// FailBeforeCommit makes the next write of r return ErrInjected and change nothing, as on a full disk. While Work runs, the next write may
// be one of the worker, which tries it again.
func FailBeforeCommit(t testing.TB, r *runner.Runner) { t.Helper(); inject(t, r, true) }

// FailAfterCommit makes the next write of r return ErrInjected although the write was committed, as after a broken connection or a timeout.
// The write is one of r itself, not the commit of a transaction of the program, such as one with EnqueueTx.
// If that write is an Enqueue, it has added a task that the caller does not know about, and a unique key makes a second call safe. While
// Work runs, the next write may be one of the worker, which detects that its write was committed.
func FailAfterCommit(t testing.TB, r *runner.Runner) { t.Helper(); inject(t, r, false) }

func inject(t testing.TB, r *runner.Runner, before bool) {
	t.Helper()
	if _, ok := kits.Load(r); !ok {
		t.Fatal("runnertest: faults are for a Runner of New or Run")
	}
	faults.mu.Lock()
	defer faults.mu.Unlock()
	faults.next[r.Path()] = before
}

// faults has the files whose next commit fails. The value is true if that commit fails before it takes effect, and false if it fails
// afterwards.
var faults = struct {
	mu   sync.Mutex
	next map[string]bool
}{next: map[string]bool{}}

func forget(path string) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	delete(faults.next, path)
}

// take returns the fault for the next commit of a file, and removes the fault. The result any reports whether there is one.
func take(path string) (before, any bool) {
	faults.mu.Lock()
	defer faults.mu.Unlock()
	before, any = faults.next[path]
	delete(faults.next, path)
	return before, any
}

const driverName = "sqlite-runnertest"

func init() {
	pool, err := sql.Open("sqlite", "")
	if err != nil {
		panic(err)
	}
	sql.Register(driverName, wrapper{pool.Driver()})
	_ = pool.Close() // the pool has opened no connection
}

// wrapper is the driver of SQLite with commits that can fail.
type wrapper struct{ driver.Driver }

// inner lists the interfaces of SQLite's connections.
type inner interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// Open implements driver.Driver.
func (w wrapper) Open(name string) (driver.Conn, error) {
	c, err := w.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	file, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	path := filepath.FromSlash(file.Path)
	if len(path) > 2 && path[2] == ':' { // /C:/dir/file
		path = path[1:]
	}
	return conn{c.(inner), path}, nil
}

type conn struct {
	inner
	path string
}

// PrepareContext implements driver.ConnPrepareContext.
func (c conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.inner.PrepareContext(ctx, query)
	if err != nil || !isCommit(query) {
		return s, err
	}
	return stmt{s.(innerStmt), c.path}, nil
}

// ExecContext implements driver.ExecerContext.
func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !isCommit(query) {
		return c.inner.ExecContext(ctx, query, args)
	}
	return commit(c.path, func() (driver.Result, error) { return c.inner.ExecContext(ctx, query, args) })
}

func isCommit(query string) bool { return strings.EqualFold(strings.TrimSpace(query), "COMMIT") }

type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt is a prepared COMMIT.
type stmt struct {
	innerStmt
	path string
}

// ExecContext implements driver.StmtExecContext.
func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return commit(s.path, func() (driver.Result, error) { return s.innerStmt.ExecContext(ctx, args) })
}

func commit(path string, do func() (driver.Result, error)) (driver.Result, error) {
	before, any := take(path)
	if any && before {
		return nil, ErrInjected
	}
	done, err := do()
	if any && err == nil {
		return nil, ErrInjected
	}
	return done, err
}
