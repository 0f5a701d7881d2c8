package selftest

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"net/url"
	"strconv"
	"time"

	"modernc.org/sqlite"
)

//go:embed history.sql
var historySQL string

// history is the harness's own way to the database: without the product.
type history struct {
	db     *sql.DB
	server bool // it is on one
}

// connect opens the database with SQLite alone, or the driver of the server.
func connect(s workspace) (*sql.DB, error) {
	if onServer(s.database()) {
		return connectServer(s.database())
	}
	query := url.Values{"_pragma": {"busy_timeout(10000)", "synchronous(FULL)"}, "_txlock": {"immediate"}, "mode": {"rw"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: s.database(), RawQuery: query.Encode()}).String())
}

// install puts the triggers into a new database.
func install(ctx context.Context, s workspace) (*history, error) {
	db, err := connect(s)
	if err != nil {
		return nil, err
	}
	text := historySQL
	if onServer(s.database()) {
		text = serverHistorySQL
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &history{db, onServer(s.database())}, nil
}

func (h *history) close() { _ = h.db.Close() }

// isBusy says whether SQLite found the database locked for too long, isFull the disk full, and isConstraint the row wrong.
func isBusy(err error) bool       { return code(err) == 5 }
func isFull(err error) bool       { return code(err) == 13 }
func isConstraint(err error) bool { return code(err) == 19 || isState(err, "23") }

func code(err error) int {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code() & 0xff
	}
	return 0
}

// left counts the tasks that have not ended, and the workers that nobody has buried although they are none of pids.
func (h *history) unfinished(ctx context.Context, pids []int) (tasks, strays int, err error) {
	live := "0"
	for _, pid := range pids {
		live += "," + strconv.Itoa(pid)
	}
	err = h.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM tasks WHERE finished_at IS NULL),
		(SELECT count(*) FROM workers WHERE ended_at IS NULL AND pid NOT IN (`+live+`))`).Scan(&tasks, &strays)
	return tasks, strays, err
}

// The nemesis's own ways to be in everybody's way. What fails here harms nobody.

// hold calls do while nobody else can write.
func (h *history) withWriteLock(do func()) {
	if h.server {
		h.withServerLock(do)
		return
	}
	h.onConnection(func(conn *sql.Conn) {
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 0") // SQLite's own pauses grow too long to be in time
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if _, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err == nil {
				do()
				_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
				break
			}
		}
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 10000")
	})
}

// read calls do while the write-ahead log cannot start afresh.
func (h *history) withSnapshot(do func()) {
	if h.server {
		h.withServerSnapshot(do)
		return
	}
	h.onConnection(func(conn *sql.Conn) {
		var n int
		if _, err := conn.ExecContext(context.Background(), "BEGIN DEFERRED"); err == nil {
			_ = conn.QueryRowContext(context.Background(), "SELECT count(*) FROM tasks").Scan(&n)
			do()
			_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
		}
	})
}

func (h *history) checkpoint() {
	if h.server {
		_, _ = h.db.Exec("CHECKPOINT")
		return
	}
	h.onConnection(func(conn *sql.Conn) {
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 1000")
		_, _ = conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 10000")
	})
}

// locked says whether somebody holds the write lock for that long.
func (h *history) lockHeldFor(d time.Duration) (is bool) {
	if h.server {
		return h.serverLockHeldFor(d)
	}
	h.onConnection(func(conn *sql.Conn) {
		for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
			_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 0")
			_, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
			if err == nil {
				_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
				break
			}
			if is = time.Now().After(end); is {
				break
			}
		}
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 10000")
	})
	return is
}

func (h *history) onConnection(do func(*sql.Conn)) {
	conn, err := h.db.Conn(context.Background())
	if err != nil {
		return
	}
	defer conn.Close()
	do(conn)
}

// event is a row of history 1.
type event struct {
	seq, at                   int64 // at: ms of the wall clock
	op                        string
	id                        int64
	oldState, state           string
	oldGeneration, generation int64
	oldWorker, worker         string
	oldLease, lease           int64
	oldAttempt, attempt       int
	oldLosses, losses         int
	maxAttempts, maxLosses    int
	priority                  int
	queue, job, label, key    string
	lane                      string
	waits                     bool // for more than its lane, if it is blocked
	reason, err, result       string
	pid                       int
}

// events calls do for each event until that returns false.
func (h *history) events(ctx context.Context, do func(event) bool) error {
	rows, err := h.db.QueryContext(ctx, `SELECT seq, at, op, coalesce(id, 0), coalesce(old_state, ''), coalesce(state, ''), coalesce(old_generation, 0),
		coalesce(generation, 0), coalesce(old_worker, ''), coalesce(worker, ''), coalesce(old_lease, 0), coalesce(lease, 0), coalesce(old_attempt, 0),
		coalesce(attempt, 0), coalesce(old_losses, 0), coalesce(losses, 0), coalesce(max_attempts, 0), coalesce(max_losses, 0), coalesce(priority, 0),
		coalesce(queue, ''), coalesce(job, ''), coalesce(label, ''), coalesce(unique_key, ''), coalesce(reason, ''), coalesce(error, ''),
		coalesce(result, ''), coalesce(pid, 0), coalesce(lane, ''), coalesce(waits, 1) FROM selftest_history ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e event
		if err := rows.Scan(&e.seq, &e.at, &e.op, &e.id, &e.oldState, &e.state, &e.oldGeneration, &e.generation, &e.oldWorker, &e.worker, &e.oldLease,
			&e.lease, &e.oldAttempt, &e.attempt, &e.oldLosses, &e.losses, &e.maxAttempts, &e.maxLosses, &e.priority, &e.queue, &e.job, &e.label,
			&e.key, &e.reason, &e.err, &e.result, &e.pid, &e.lane, &e.waits); err != nil {
			return err
		}
		if !do(e) {
			break
		}
	}
	return rows.Err()
}

// sound asks SQLite whether the file is. A server has no such question.
func (h *history) integrityProblems(ctx context.Context) (problems []string, err error) {
	if h.server {
		return nil, nil
	}
	for _, pragma := range []string{"PRAGMA integrity_check", "SELECT 'foreign key of ' || \"table\" FROM pragma_foreign_key_check"} {
		rows, err := h.db.QueryContext(ctx, pragma)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			if text != "ok" {
				problems = append(problems, text)
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return problems, nil
}
