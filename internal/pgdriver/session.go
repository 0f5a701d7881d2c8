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

// settings are those of each of our sessions, but for search_path and default_transaction_read_only.
func settings(patience time.Duration) map[string]string {
	return map[string]string{
		"search_path":  "pg_catalog", // nothing is looked up by it: each statement names our schema
		"lock_timeout": strconv.FormatInt(max(patience.Milliseconds(), 1), 10),
		// A client that is gone must not keep its locks: one whose host died, or that is stopped.
		"idle_in_transaction_session_timeout": "60s", "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2",
		"tcp_keepalives_count": "3",
		"jit":                  "off", "default_transaction_isolation": "read committed",
	}
}

// session returns config for connections with these settings. They are set by statements: a pooler refuses parameters of the start.
func session(config *pgx.ConnConfig, settings map[string]string) *pgx.ConnConfig {
	config = config.Copy()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		delete(config.RuntimeParams, key)
		fmt.Fprintf(&text, "SET %s = '%s'; ", key, settings[key])
	}
	text.WriteString(db.SelectBackend)
	plain := config.Config.Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		pid, err := ask(ctx, conn, text.String())
		if err != nil || pid == strconv.FormatUint(uint64(conn.PID()), 10) {
			return err
		}
		return unshared(ctx, conn, pid, plain) // a pooler gives its clients numbers of its own
	}
	return config
}

// errNoAnswer is of a server, or of what stands between, that ends a conversation in good order and before its time.
var errNoAnswer = errors.New("the server did not answer a question")

// ask returns what the last of some statements selects.
func ask(ctx context.Context, conn *pgconn.PgConn, text string) (string, error) {
	answers, err := conn.Exec(ctx, text).ReadAll()
	if err != nil {
		return "", err
	}
	if n := len(answers); n > 0 && len(answers[n-1].Rows) > 0 {
		return string(answers[n-1].Rows[0][0]), nil
	}
	return "", errNoAnswer
}

// unshared returns an error if a pooler gives a transaction of another client the server's process, pid, that has just worked for conn, or
// conn another one meanwhile: then nothing that belongs to a session is conn's own.
func unshared(ctx context.Context, conn *pgconn.PgConn, pid string, config *pgconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, dialFor) // a pool that is full lets clients wait
	defer cancel()
	other, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	theirs, err := ask(ctx, other, "BEGIN; "+db.SelectBackend)
	ours := pid
	if err == nil && theirs != pid {
		ours, err = ask(ctx, conn, db.SelectBackend)
	}
	if err == nil && (theirs == pid || ours != pid) {
		err = &pgconn.PgError{Severity: "FATAL", Code: "0A000", Message: "the pool is in transaction mode"}
	}
	return err
}
