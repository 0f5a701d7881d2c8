package harness

import (
	"context"
	"database/sql"
	"time"
)

// withWriteLock calls do while nobody else can write. Like all functions of
// this file it ignores errors: if a fault can't be injected, the run goes on.
func (db *database) withWriteLock(do func()) {
	if db.server {
		db.withServerLock(do)
		return
	}

	db.onConnection(func(conn *sql.Conn) {
		// Without a timeout SQLite doesn't wait for the lock. The loop below
		// tries more often than SQLite would.
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 0")
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

// withSnapshot calls do while a read transaction keeps the WAL from being
// reset.
func (db *database) withSnapshot(do func()) {
	if db.server {
		db.withServerSnapshot(do)
		return
	}

	db.onConnection(func(conn *sql.Conn) {
		var n int
		if _, err := conn.ExecContext(context.Background(), "BEGIN DEFERRED"); err == nil {
			_ = conn.QueryRowContext(context.Background(), "SELECT count(*) FROM tasks").Scan(&n)
			do()
			_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
		}
	})
}

func (db *database) checkpoint() {
	if db.server {
		_, _ = db.pool.Exec("CHECKPOINT")
		return
	}

	db.onConnection(func(conn *sql.Conn) {
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 1000")
		_, _ = conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
		_, _ = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 10000")
	})
}

// lockHeldFor reports whether the write lock stays held for the duration d.
func (db *database) lockHeldFor(d time.Duration) (is bool) {
	if db.server {
		return db.serverLockHeldFor(d)
	}

	db.onConnection(func(conn *sql.Conn) {
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

func (db *database) onConnection(do func(*sql.Conn)) {
	conn, err := db.pool.Conn(context.Background())
	if err != nil {
		return
	}
	defer conn.Close()
	do(conn)
}
