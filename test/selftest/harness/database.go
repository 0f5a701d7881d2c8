package harness

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"

	"modernc.org/sqlite"
)

// database is the connection of the harness. It uses the SQL driver directly,
// and not the database code of runner.
type database struct {
	pool   *sql.DB
	server bool // whether the database is on a server
}

// connect opens the database with the SQL driver, and not with the database
// code of runner.
func connect(w workspace) (*sql.DB, error) {
	if onServer(w.databaseAddress()) {
		return connectServer(w.databaseAddress())
	}
	query := url.Values{"_pragma": {"busy_timeout(10000)", "synchronous(FULL)"}, "_txlock": {"immediate"}, "mode": {"rw"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: w.databaseAddress(), RawQuery: query.Encode()}).String())
}

// install adds the history triggers to a new database.
func install(ctx context.Context, w workspace) (*database, error) {
	db, err := connect(w)
	if err != nil {
		return nil, err
	}

	text := historySQL
	if onServer(w.databaseAddress()) {
		text = serverHistorySQL
	}
	if _, err := db.ExecContext(ctx, text); err != nil {
		return nil, errors.Join(err, db.Close())
	}

	return &database{db, onServer(w.databaseAddress())}, nil
}

func (db *database) close() { _ = db.pool.Close() }

// isBusy reports whether SQLite found the database locked for too long. isFull
// reports a full disk, and isConstraint a violated constraint.
func isBusy(err error) bool { return code(err) == 5 }

func isFull(err error) bool { return code(err) == 13 }

func isConstraint(err error) bool { return code(err) == 19 || isState(err, "23") }

func code(err error) int {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code() & 0xff
	}
	return 0
}

// unfinished counts the unfinished tasks, and as strays the workers that the
// database hasn't marked as ended although their processes are gone. pids has
// those of all living workers.
func (db *database) unfinished(ctx context.Context, pids []int) (tasks, strays int, err error) {
	live := "0"
	for _, pid := range pids {
		live += "," + strconv.Itoa(pid)
	}
	err = db.pool.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM tasks WHERE finished_at IS NULL),
		(SELECT count(*) FROM workers WHERE ended_at IS NULL AND pid NOT IN (`+live+`))`).Scan(&tasks, &strays)
	return tasks, strays, err
}

// integrityProblems runs the integrity checks of SQLite. A server has no such
// checks.
func (db *database) integrityProblems(ctx context.Context) (problems []string, err error) {
	if db.server {
		return nil, nil
	}

	for _, pragma := range []string{"PRAGMA integrity_check", "SELECT 'foreign key of ' || \"table\" FROM pragma_foreign_key_check"} {
		rows, err := db.pool.QueryContext(ctx, pragma)
		if err != nil {
			return nil, err
		}
		defer rows.Close()

		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			if text != "ok" {
				problems = append(problems, text)
			}
		}

		if err := rows.Err(); err != nil {
			return nil, err
		}
	}

	return problems, nil
}
