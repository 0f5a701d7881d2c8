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
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/runner/db/internal/postgres"
)

// settings returns the server settings that all sessions have.
func settings(lockTimeout time.Duration) map[string]string {
	return map[string]string{
		"search_path":  "pg_catalog", // any value would do: each statement names the schema of its tables
		"lock_timeout": strconv.FormatInt(max(lockTimeout.Milliseconds(), 1), 10),
		// The server ends the sessions of clients whose host died or whose
		// process was stopped, and so releases their locks.
		"idle_in_transaction_session_timeout": "60s",
		"tcp_keepalives_idle":                 "5",
		"tcp_keepalives_interval":             "2",
		"tcp_keepalives_count":                "3",
		// The session for notifications is idle nearly always.
		"idle_session_timeout":          "0",
		"jit":                           "off",
		"default_transaction_isolation": "read committed",
	}
}

// session returns a config for connections as those of a pool, with these
// settings. Each new connection sets them with SET statements: a pooler rejects
// a startup message with settings that it doesn't know.
func session(of *pgxpool.Config, settings, more map[string]string) *pgx.ConnConfig {
	config, settings := of.ConnConfig.Copy(), maps.Clone(settings)
	maps.Copy(settings, more)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		delete(config.RuntimeParams, key)
		fmt.Fprintf(&text, "SET %s = '%s'; ", key, settings[key])
	}

	text.WriteString(postgres.SelectBackend)

	plain := config.Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if plain.AfterConnect != nil {
			if err := plain.AfterConnect(ctx, conn); err != nil {
				return err
			}
		}

		pid, err := lastValue(ctx, conn, text.String())
		if err != nil || pid == strconv.FormatUint(uint64(conn.PID()), 10) {
			return err
		}
		// conn leads to a pooler, which invents process ids
		other := plain.Copy()
		if of.BeforeConnect != nil {
			if err := of.BeforeConnect(ctx, other); err != nil {
				return err
			}
		}
		return checkPooling(ctx, conn, pid, &other.Config)
	}
	return config
}

// errNoRow means that the connection was closed, without an error, before a row
// arrived.
var errNoRow = errors.New("the server returned no row")

// lastValue runs statements, and returns the first value that the last one
// returns.
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

// checkPooling returns an error if a pooler is in transaction mode, where
// clients share a session of the server, so that its settings and locks belong
// to none of them. pid is the server process that has just worked for conn. We
// begin a transaction on another connection: the pooler is in that mode if pid
// executes it, or if another process executes conn's next statement.
func checkPooling(ctx context.Context, conn *pgconn.PgConn, pid string, config *pgconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout) // a pooler whose pool is full makes the client wait
	defer cancel()

	other, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()

	theirs, err := lastValue(ctx, other, "BEGIN; "+postgres.SelectBackend)
	ours := pid
	if err == nil && theirs != pid {
		ours, err = lastValue(ctx, conn, postgres.SelectBackend)
	}
	if err == nil && (theirs == pid || ours != pid) {
		err = &pgconn.PgError{Severity: "FATAL", Code: "0A000", Message: "the pool is in transaction mode"}
	}

	return err
}
