package selftest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the judge's own way to a server
)

// connectServer opens the database with the driver alone.
func connectServer(address string) (*sql.DB, error) {
	db, err := sql.Open("pgx", address+"&search_path=runner&application_name=judge")
	if err == nil {
		db.SetMaxIdleConns(0) // the server does not live long
	}
	return db, err
}

func isState(err error, states ...string) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		for _, state := range states {
			if strings.HasPrefix(said.Code, state) {
				return true
			}
		}
	}
	return false
}

// isGone says whether the server, or the way to it, is not there.
func isUnreachable(err error) bool {
	var retry interface{ SafeToRetry() bool }
	return isState(err, "57P", "08", "53300") || err != nil && !isState(err, "") && (errors.As(err, &retry) || strings.Contains(err.Error(), "EOF") ||
		strings.Contains(err.Error(), "connect") || strings.Contains(err.Error(), "conn closed"))
}

// numbered writes the parameters of a statement as a server wants them.
func dollarParameters(text string) string {
	for i := 1; strings.Contains(text, "?"); i++ {
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", i), 1)
	}
	return text
}

// holdServer calls do while nobody else can write.
func (db *database) withServerLock(do func()) {
	db.inTransaction(func(tx *sql.Tx) {
		if _, err := tx.Exec("LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE"); err == nil {
			do()
		}
	})
}

// readServer calls do while nothing that has gone since is cleaned away.
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
		_ = tx.Rollback() // the server may be gone
	}
}

// lockedServer says whether one connection holds the lock of all that write for that long.
func (db *database) serverLockHeldFor(d time.Duration) bool {
	holder := func() (pid int) {
		_ = db.pool.QueryRow("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted LIMIT 1").Scan(&pid) // nobody: 0
		return pid
	}
	first := holder()
	time.Sleep(d)
	return first != 0 && holder() == first
}

// terminate ends a connection of somebody's, on the server.
func (db *database) endConnection(n int) {
	_, _ = db.pool.Exec(`SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'runner' ORDER BY pid
		OFFSET $1 % greatest((SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runner'), 1) LIMIT 1) AS one`, n)
}
