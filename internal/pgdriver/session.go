package pgdriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/runner/db"
)

// settings returns the parameters of every session.
func settings(lockTimeout time.Duration) map[string]string {
	return map[string]string{
		"search_path":  "pg_catalog", // statements do not depend on it, because they name the schema of each table
		"lock_timeout": strconv.FormatInt(max(lockTimeout.Milliseconds(), 1), 10),
		// These settings release the locks of a client whose host died, or whose process was stopped.
		"idle_in_transaction_session_timeout": "60s", "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2",
		"tcp_keepalives_count": "3",
		"jit":                  "off", "default_transaction_isolation": "read committed",
	}
}

// session returns a copy of config whose connections have these settings and some more. Each new connection runs SET statements, because a
// connection pooler rejects unknown parameters in the startup message.
func session(config *pgx.ConnConfig, settings, more map[string]string) *pgx.ConnConfig {
	config, settings = config.Copy(), maps.Clone(settings)
	maps.Copy(settings, more)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		delete(config.RuntimeParams, key)
		fmt.Fprintf(&text, "SET %s = '%s'; ", key, settings[key])
	}
	text.WriteString(db.SelectBackend)
	plain := config.Config.Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		pid, err := lastValue(ctx, conn, stayOpen(conn)+text.String())
		if err != nil || pid == strconv.FormatUint(uint64(conn.PID()), 10) {
			return err
		}
		return checkPooling(ctx, conn, pid, plain) // the ids differ because a pooler sends ids of its own
	}
	return config
}

// stayOpen returns the statement that keeps an idle session open. The setting exists since version 14. The session that listens for
// notifications is idle nearly always.
func stayOpen(conn *pgconn.PgConn) string {
	major, _, _ := strings.Cut(conn.ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 14 {
		return ""
	}
	return "SET idle_session_timeout = 0; "
}

// errNoRow means that a server or a proxy closed the connection without an error before it sent the row.
var errNoRow = errors.New("the server returned no row")

// lastValue runs statements and returns the first column of the first row of the last one.
func lastValue(ctx context.Context, conn *pgconn.PgConn, text string) (string, error) {
	results, err := conn.Exec(ctx, text).ReadAll()
	if err != nil {
		return "", err
	}
	if n := len(results); n > 0 && len(results[n-1].Rows) > 0 {
		return string(results[n-1].Rows[0][0]), nil
	}
	return "", errNoRow
}

// checkPooling returns an error if a connection pooler is in transaction mode. In that mode each transaction may run in another session,
// so the settings and locks of a session do not belong to one client. The parameter pid is the id of the server process that has just
// worked for conn. checkPooling begins a transaction on another connection. The pooler is in transaction mode if that process runs the new
// transaction, or if another process works for conn meanwhile.
func checkPooling(ctx context.Context, conn *pgconn.PgConn, pid string, config *pgconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout) // a full pool makes clients wait
	defer cancel()
	other, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	theirs, err := lastValue(ctx, other, "BEGIN; "+db.SelectBackend)
	ours := pid
	if err == nil && theirs != pid {
		ours, err = lastValue(ctx, conn, db.SelectBackend)
	}
	if err == nil && (theirs == pid || ours != pid) {
		err = &pgconn.PgError{Severity: "FATAL", Code: "0A000", Message: "the pool is in transaction mode"}
	}
	return err
}
