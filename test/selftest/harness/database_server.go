package harness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // SQL driver that the harness uses
)

// connectServer uses the SQL driver, and not the database code of runner, to
// open a database on a server.
func connectServer(address string) (*sql.DB, error) {
	db, err := sql.Open("pgx", address+"&search_path=runner&application_name=judge")
	if err == nil {
		db.SetMaxIdleConns(0) // keep no idle connections, because the nemesis soon kills the server again
	}
	return db, err
}

func isState(err error, states ...string) bool {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		for _, state := range states {
			if strings.HasPrefix(failure.Code, state) {
				return true
			}
		}
	}
	return false
}

// isUnreachable reports whether the server, or the network to it, was down.
func isUnreachable(err error) bool {
	var retry interface{ SafeToRetry() bool }
	return isState(err, "57P", "08", "53300") || err != nil && !isState(err, "") &&
		(errors.As(err, &retry) || strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "connect") ||
			strings.Contains(err.Error(), "conn closed"))
}

// dollarParameters replaces each ? by $1, $2 and so on.
func dollarParameters(text string) string {
	for i := 1; strings.Contains(text, "?"); i++ {
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", i), 1)
	}
	return text
}

// withServerLock calls do while nobody else can write.
func (db *database) withServerLock(do func()) {
	db.inTransaction(func(tx *sql.Tx) {
		if _, err := tx.Exec("LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE"); err == nil {
			do()
		}
	})
}

// withServerSnapshot calls do while an open transaction keeps vacuum from
// removing rows.
func (db *database) withServerSnapshot(do func()) {
	db.inTransaction(func(tx *sql.Tx) {
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM tasks").Scan(&n); err == nil {
			do()
		}
	})
}

func (db *database) inTransaction(do func(*sql.Tx)) {
	tx, err := db.pool.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err == nil {
		do(tx)
		_ = tx.Rollback() // an error means that the server is down
	}
}

// serverLockHeldFor reports whether one connection holds the advisory lock of
// all writers for the duration d.
func (db *database) serverLockHeldFor(d time.Duration) bool {
	holder := func() (pid int) {
		_ = db.pool.QueryRow("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted LIMIT 1").Scan(&pid)
		return pid // the result is 0 if no connection holds the lock
	}
	first := holder()
	time.Sleep(d)
	return first != 0 && holder() == first
}

// endConnection ends one connection between a process of runner and the server.
// The number n selects the connection.
func (db *database) endConnection(n int) {
	_, _ = db.pool.Exec(`SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'runner'
		ORDER BY pid OFFSET $1 % greatest((SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runner'), 1) LIMIT 1) AS one`, n)
}
