package selftest

import (
	"context"
	"database/sql"
	"time"
)

// hold calls do while nobody else can write.
func (db *database) withWriteLock(do func()) {
	if db.server {
		db.withServerLock(do)
		return
	}
	db.onConnection(func(conn *sql.Conn) {
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

// locked says whether somebody holds the write lock for that long.
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
