package harness

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

// RoleCommand is the first argument of the processes that the harness starts:
// RoleCommand ROLE DIR ARGS, where DIR is the directory of the run. For roles
// that use runner as a library, the main package opens the database. For the
// others it calls this package.
//
//	worker DIR NAME KIND                   run tasks; KIND is commands or functions (functions need no guardian)
//	enqueue DIR NAME SEED MS               enqueue with the library until killed, one task about every MS milliseconds
//	sql DIR NAME SEED MS                   enqueue with plain SQL until killed
//	browse DIR                             request the web pages until killed
//	task DIR KIND MS                       run a command of the workload
//	child DIR TASK GENERATION [TRAIT...]   run as a process that a command left behind
//	bound DIR NAME SEED MS                 like enqueue, but first bind-mount the database file of the parent directory into DIR
const RoleCommand = "role"

// Client holds the operations of runner that an enqueuer uses.
type Client struct {
	Enqueue func(context.Context, jobs.Spec) (int64, error)
	Cancel  func(context.Context, int64) error
	Retry   func(context.Context, int64) error
}

// Database returns the path or the address of the database of a run.
func Database(dir string) string {
	if address := os.Getenv("RUNNER_DB"); onServer(address) {
		return address // this address belongs to the simulated host of this process
	}
	return workspace{dir}.databaseAddress()
}

// NoteOpening notes how long opening the database took.
func NoteOpening(dir string, took time.Duration) error {
	notes, err := openNotes(workspace{dir})
	if err != nil {
		return err
	}
	notes.add(opOpen, 0, 0, strconv.FormatInt(took.Microseconds(), 10))
	return nil
}

// Enqueue enqueues tasks until ctx ends, and cancels and retries some of them.
// path is the program that command tasks run.
func Enqueue(ctx context.Context, c Client, dir, path, me string, seed uint64, every time.Duration) error {
	e, err := newEnqueuer(dir, path, me, seed, every)
	if err != nil {
		return err
	}

	var cancellations sync.WaitGroup
	defer cancellations.Wait()

	return e.run(ctx, func(d draft) (int64, error) {
		id, err := c.Enqueue(ctx, d.spec)
		if err == nil && d.kind == cancelRetry {
			cancellations.Go(func() { e.cancelAndRetry(ctx, c, id) })
		}
		return id, err
	})
}

// EnqueueSQL enqueues tasks with plain INSERTs until ctx ends.
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
		args := []any{s.Job, string(s.Args), s.Label, s.Queue, s.Priority, s.MaxAttempts, s.MaxLosses, s.KillAfter.Milliseconds(),
			string(s.Backoff.Strategy), s.Backoff.Delay.Milliseconds(), key, lane, after, afterAny, timeout, runAt}
		return insertPlain(ctx, e.db, onServer(e.databaseAddress()), text, args, s.Label)
	})
}

// insertPlain enqueues a task with plain SQL and returns its id. If an
// unfinished task has the same unique key, the database adds no task and
// insertPlain returns 0. It notices this case because the newest task doesn't
// have the given label.
//
// On a server, insertPlain first takes a table lock, so that a claim sees
// either all of the insert or none of it. Without this lock, the order of the
// history could differ from the order of the commits.
func insertPlain(ctx context.Context, db *sql.DB, server bool, text string, args []any, label string) (id int64, err error) {
	tx, err := db.BeginTx(ctx, nil) // in a SQLite file this executes BEGIN IMMEDIATE, because the function connect sets _txlock
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // Rollback has no effect after a commit

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
		light := e.every == 0 // without pauses, enqueue only functions: workers can't start commands so fast
		if e.every > 0 {
			time.Sleep(e.every/2 + time.Duration(e.random.Int64N(int64(e.every))))
			var commands, functions int
			if err := e.db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE job = 'command'), count(*) FILTER (WHERE job <> 'command')
				FROM tasks WHERE state = 'pending'`).Scan(&commands, &functions); err != nil && ctx.Err() == nil {
				if isUnreachable(err) {
					continue
				}
				return fmt.Errorf("count pending tasks: %w", err)
			}
			if functions >= backlog {
				continue
			}

			light = commands >= backlog // if many commands wait, enqueue functions, which need much less processor time
		}

		d := e.draw(light)
		e.notes.add(opTry, 0, 0, d.label)
		id, err := enqueue(d)
		switch {
		case ctx.Err() != nil:
			return nil
		case onServer(e.databaseAddress()) && errors.Is(err, jobs.ErrBusy): // expected: the server is down, or the nemesis holds the lock
		case errors.Is(err, jobs.ErrBusy), isBusy(err):
			e.notes.add(opBusy, 0, 0, err.Error())
		case errors.Is(err, jobs.ErrFull), isFull(err), // the disk is full
			errors.Is(err, jobs.ErrNotFound), isConstraint(err), // the dependency was deleted
			errors.Is(err, jobs.ErrUnknown), isUnreachable(err): // the connection broke before the reply came
		case err != nil:
			return fmt.Errorf("enqueue: %w", err)
		case id != 0:
			e.notes.add(opAck, id, 0, d.label)
			e.remember(id)
		}
	}

	return nil
}

// cancelAndRetry cancels a task a moment after its enqueue, and then retries
// it.
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

// Functions returns the functions that each worker of a run registers.
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

// Task runs a command of the workload and returns its exit status.
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
