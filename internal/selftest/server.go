package selftest

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the judge's own way to a server
)

// Server is a PostgreSQL server that belongs to the run: it is killed, too.
type Server struct {
	Address string                      // of an empty database
	Socket  string                      // where it listens
	Kill    func() error                // all of it, at once
	Crash   func() error                // its first process, by KILL
	Run     func(context.Context) error // again
}

// hosts is how many there seem to be: processes that share neither locks nor their way to the server. The commands of all of them are
// looked after, since it is one machine after all.
const hosts = 2

//go:embed history_server.sql
var serverHistorySQL string

// onServer says whether the database of a run is on a server.
func onServer(database string) bool { return strings.HasPrefix(database, "postgres://") }

// addresses are those by which the processes of a run name its database.
func (s workspace) addresses() []string {
	text, err := os.ReadFile(filepath.Join(s.dir, "addresses"))
	if err != nil {
		return []string{filepath.Join(s.dir, "runner.db")}
	}
	return strings.Fields(string(text))
}

// serve tells all processes of the run where the database is: the first address is the server's own, the others lead through proxies.
func (r *run) setUpServer(ctx context.Context) error {
	if r.Server == nil {
		return nil
	}
	list := []string{r.Server.Address}
	for range hosts {
		p, err := newProxy(r.Server.Socket)
		if err != nil {
			return err
		}
		r.proxies = append(r.proxies, p)
		list = append(list, "postgres://postgres@"+p.address()+"/postgres?sslmode=disable")
	}
	return os.WriteFile(filepath.Join(r.dir, "addresses"), []byte(strings.Join(list, "\n")), 0o600)
}

// host is what makes a process one of host n, counted from 1.
func (s workspace) host(n int) []string {
	list := s.addresses()
	return []string{"RUNNER_DB=" + list[n], "XDG_STATE_HOME=" + filepath.Join(s.dir, "host"+strconv.Itoa(n))}
}

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
func (h *history) withServerLock(do func()) {
	h.inTransaction(func(tx *sql.Tx) {
		if _, err := tx.Exec("LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE"); err == nil {
			do()
		}
	})
}

// readServer calls do while nothing that has gone since is cleaned away.
func (h *history) withServerSnapshot(do func()) {
	h.inTransaction(func(tx *sql.Tx) {
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM tasks").Scan(&n); err == nil {
			do()
		}
	})
}

func (h *history) inTransaction(do func(*sql.Tx)) {
	tx, err := h.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err == nil {
		do(tx)
		_ = tx.Rollback() // the server may be gone
	}
}

// lockedServer says whether one connection holds the lock of all that write for that long.
func (h *history) serverLockHeldFor(d time.Duration) bool {
	holder := func() (pid int) {
		_ = h.db.QueryRow("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted LIMIT 1").Scan(&pid) // nobody: 0
		return pid
	}
	first := holder()
	time.Sleep(d)
	return first != 0 && holder() == first
}

// terminate ends a connection of somebody's, on the server.
func (h *history) endConnection(n int) {
	_, _ = h.db.Exec(`SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'runner' ORDER BY pid
		OFFSET $1 % greatest((SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runner'), 1) LIMIT 1) AS one`, n)
}
