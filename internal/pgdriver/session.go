package pgdriver

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// settings returns the server settings that all sessions have.
func settings(lockTimeout time.Duration) map[string]string {
	return map[string]string{
		"search_path":  "pg_catalog", // any value would do, because each statement names the schema of its tables
		"lock_timeout": strconv.FormatInt(max(lockTimeout.Milliseconds(), 1), 10),
		// The server ends the sessions of clients whose host died or whose process was stopped, and so releases their locks.
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

const readOnly = "default_transaction_read_only"

// session returns a copy of config whose connections have the given settings,
// which they send when they begin. PgBouncer refuses such settings. Another
// pooler may drop them, so we look at one that a server always reports: with a
// SET, our settings could stay in a session that a pooler gives to others later.
func session(config *pgx.ConnConfig, settings, more map[string]string) *pgx.ConnConfig {
	config = config.Copy()
	maps.Copy(config.RuntimeParams, settings)
	maps.Copy(config.RuntimeParams, more)
	want := config.RuntimeParams[readOnly]
	config.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		if want != "" && conn.ParameterStatus(readOnly) != want {
			return &pgconn.PgError{Severity: "FATAL", Code: "0A000", Message: "the settings of the session are lost"}
		}
		return nil
	}
	return config
}
