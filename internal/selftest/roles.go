package selftest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"example.com/runner/jobs"
)

// RoleCommand is the hidden command by which the program under test plays a part: RoleCommand, a role, the directory of the run, and
// what the role wants. Main opens the database for the roles that need the product itself, and hands the others to Task, Child and EnqueueSQL.
//
//	worker DIR NAME KIND       KIND is commands or functions; the latter has no guardian
//	enqueue DIR NAME SEED MS   through the library, until killed; a task about each MS
//	sql DIR NAME SEED MS       by plain SQL, until killed
//	browse DIR                 looks at the pages, until killed
//	task DIR KIND MS           a command of the workload
//	child DIR TASK GENERATION [WORD...]  what a command leaves behind
//	bound DIR NAME SEED MS     enqueue, through a bind mount of the file that DIR names; it enqueues there once
const RoleCommand = "__selftest"

// Client is how an enqueuer reaches the product.
type Client struct {
	Enqueue func(context.Context, jobs.Spec) (int64, error)
	Cancel  func(context.Context, int64) error
	Retry   func(context.Context, int64) error
}

// Database returns the path of the database of a run.
func Database(dir string) string {
	if address := os.Getenv("RUNNER_DB"); onServer(address) {
		return address // of the host that it plays on
	}
	return workspace{dir}.databaseAddress()
}

// Opened notes how long opening the database took.
func NoteOpening(dir string, took time.Duration) error {
	notes, err := openNotes(workspace{dir})
	if err != nil {
		return err
	}
	notes.add(opOpen, 0, 0, strconv.FormatInt(took.Microseconds(), 10))
	return nil
}

// Enqueue enqueues until ctx ends, and cancels and retries some of what it has enqueued. path is the program of commands.
func Enqueue(ctx context.Context, c Client, dir, path, me string, seed uint64, every time.Duration) error {
	e, err := newEnqueuer(dir, path, me, seed, every)
	if err != nil {
		return err
	}
	var regrets sync.WaitGroup
	defer regrets.Wait()
	return e.run(ctx, func(d draft) (int64, error) {
		id, err := c.Enqueue(ctx, d.spec)
		if err == nil && d.kind == cancelRetry {
			regrets.Go(func() { e.cancelAndRetry(ctx, c, id) })
		}
		return id, err
	})
}

// EnqueueSQL enqueues by plain INSERTs until ctx ends.
func EnqueueSQL(ctx context.Context, dir, path, me string, seed uint64, every time.Duration) error {
	e, err := newEnqueuer(dir, path, me, seed, every)
	if err != nil {
		return err
	}
	return e.run(ctx, func(d draft) (id int64, err error) {
		key, lane, after, afterAny, runAt, timeout := d.columns(time.Now())
		s := d.spec
		const text = `INSERT INTO enqueue (job, args, label, queue, priority, max_attempts, max_losses, kill_after, backoff,
			backoff_delay, unique_key, lane, after, after_any, timeout, run_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		return insertPlain(ctx, e.db, onServer(e.databaseAddress()), text, []any{s.Job, string(s.Args), s.Label, s.Queue, s.Priority, s.MaxAttempts, s.MaxLosses,
			s.KillAfter.Milliseconds(), string(s.Backoff.Strategy), s.Backoff.Delay.Milliseconds(), key, lane, after, afterAny, timeout, runAt}, s.Label)
	})
}

// insertPlain enqueues a task with that label by plain SQL, and returns its id, or 0 if its unique key is taken: then the newest task is another one.
// On a server it takes a lock that makes what it adds visible before, or after, all that a claim looks at: else the order of the histories
// would not be that of the commits.
func insertPlain(ctx context.Context, db *sql.DB, server bool, text string, args []any, label string) (id int64, err error) {
	tx, err := db.BeginTx(ctx, nil) // BEGIN IMMEDIATE: see connect
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	newest := `SELECT id FROM tasks WHERE id = (SELECT max(id) FROM tasks) AND label = ?`
	if server {
		if _, err := tx.ExecContext(ctx, "LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return 0, err
		}
		text, newest = dollarParameters(text), dollarParameters(newest)
	}
	if _, err := tx.ExecContext(ctx, text, args...); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, newest, label).Scan(&id); errors.Is(err, sql.ErrNoRows) {
		id = 0
	} else if err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

type enqueuer struct {
	*generator
	notes *notesFile
	db    *sql.DB
	every time.Duration
}

func newEnqueuer(dir, path, me string, seed uint64, every time.Duration) (*enqueuer, error) {
	w := workspace{dir}
	notes, err := openNotes(w)
	if err != nil {
		return nil, err
	}
	db, err := connect(w)
	if err != nil {
		return nil, err
	}
	me = fmt.Sprintf("%s-%d", me, os.Getpid())
	return &enqueuer{newGenerator(w, path, me, seed^uint64(os.Getpid())), notes, db, every}, nil
}

func (e *enqueuer) run(ctx context.Context, enqueue func(draft) (int64, error)) error {
	for ctx.Err() == nil {
		light := e.every == 0 // then it enqueues far more than the workers could run as commands
		if e.every > 0 {
			time.Sleep(e.every/2 + time.Duration(e.random.Int64N(int64(e.every))))
			var commands, functions int
			if err := e.db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE job = 'command'), count(*) FILTER (WHERE job <> 'command')
				FROM tasks WHERE state = 'pending'`).Scan(&commands, &functions); err != nil && ctx.Err() == nil {
				if isUnreachable(err) {
					continue
				}
				return fmt.Errorf("look at the backlog: %w", err)
			}
			if functions >= backlog {
				continue
			}
			light = commands >= backlog // starting them is what takes the processor
		}
		d := e.draw(light)
		e.notes.add(opTry, 0, 0, d.label)
		id, err := enqueue(d)
		switch {
		case ctx.Err() != nil:
			return nil
		case onServer(e.databaseAddress()) && errors.Is(err, jobs.ErrBusy): // it is away, or the lock is held
		case errors.Is(err, jobs.ErrBusy), isBusy(err):
			e.notes.add(opBusy, 0, 0, err.Error())
		case errors.Is(err, jobs.ErrFull), isFull(err), errors.Is(err, jobs.ErrNotFound), isConstraint(err), errors.Is(err, jobs.ErrUnknown), isUnreachable(err): // no room now, or no answer; or whom it was to wait for is deleted
		case err != nil:
			return fmt.Errorf("enqueue: %w", err)
		case id != 0:
			e.notes.add(opAck, id, 0, d.label)
			e.remember(id)
		}
	}
	return nil
}

// regret cancels a task a moment later, and then wants it after all.
func (e *enqueuer) cancelAndRetry(ctx context.Context, c Client, id int64) {
	time.Sleep(150 * time.Millisecond)
	e.notes.add(opCancel, id, 0, "")
	if err := c.Cancel(ctx, id); err != nil {
		return
	}
	for range 400 {
		e.notes.add(opRetry, id, 0, "")
		if c.Retry(ctx, id) == nil || ctx.Err() != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Functions are the functions that a worker of a run registers.
func Functions(dir string) ([]jobs.Handler, error) {
	e, err := newExecutor(workspace{dir})
	if err != nil {
		return nil, err
	}
	return []jobs.Handler{{Job: functionJob, MaxAttempts: 1, Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
		d, err := function.Args(task)
		if err != nil {
			return nil, err
		}
		if err := e.function(ctx, d, task.ID, task.GenerationID); err != nil {
			return nil, err
		}
		return json.RawMessage(resultOf(task.GenerationID)), nil
	}}}, nil
}

// Task is a command of the workload. It returns its exit status.
func Task(dir, k, ms string) int {
	e, err := newExecutor(workspace{dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	n, errMS := strconv.Atoi(ms)
	id, errID := strconv.ParseInt(os.Getenv("RUNNER_TASK_ID"), 10, 64)
	generation, errGeneration := strconv.ParseInt(os.Getenv("RUNNER_TASK_GENERATION"), 10, 64)
	if err := errors.Join(errMS, errID, errGeneration); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return e.command(kind(k), n, id, generation)
}
