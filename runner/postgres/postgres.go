// Package postgres lets package runner work on databases on PostgreSQL servers, version 13 or later:
//
//	r, err := runner.Open(ctx, "postgres://user@host/app", runner.Options{Engine: postgres.Engine()})
//
// Tables are in the schema runner of that database, or in the one that ?search_path=NAME of the address says. It is a package of its own so
// that programs that need no server link no driver for one.
package postgres

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

const (
	defaultSchema = "runner"
	dialFor       = 10 * time.Second
)

// Engine returns what runner.Options.Engine wants.
func Engine() *db.Engine { return &db.Engine{Connect: connect} }

func connect(address string, patience time.Duration) (db.Server, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // its text may hold a part of what could not be read, and with it of a password
		return db.Server{}, &jobs.Problem{Kind: jobs.ErrInvalid, What: "the address of the PostgreSQL server cannot be read",
			Try: "postgres://USER@HOST:PORT/DATABASE; the password in PGPASSWORD or ~/.pgpass"}
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > dialFor {
		config.ConnectTimeout = dialFor
	}
	s := db.Server{Name: name(config), Schema: cmp.Or(config.RuntimeParams["search_path"], defaultSchema)}
	set := func(config *pgx.ConnConfig, more map[string]string) *pgx.ConnConfig {
		config = config.Copy()
		for key, value := range map[string]string{
			"application_name": cmp.Or(config.RuntimeParams["application_name"], "runner"),
			"search_path":      "pg_catalog", // nothing is looked up by it: each statement names our schema
			"lock_timeout":     strconv.FormatInt(max(patience.Milliseconds(), 1), 10),
			// A client that is gone must not keep its locks: one whose host died, or that is stopped.
			"idle_in_transaction_session_timeout": "60s", "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3",
			"jit": "off", "default_transaction_isolation": "read committed",
		} {
			config.RuntimeParams[key] = value
		}
		for key, value := range more {
			config.RuntimeParams[key] = value
		}
		return config
	}
	write := set(config, nil)
	read := set(config, map[string]string{"default_transaction_read_only": "on", "synchronous_commit": "off"})
	if read.ValidateConnect != nil { // target_session_attrs=read-write would refuse a connection that is read only because we say so
		read.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	s.Write, s.Read = stdlib.GetConnector(*write), stdlib.GetConnector(*read)
	s.Together = together
	s.Listen = func(ctx context.Context, channel string, told func(string)) error {
		return listen(ctx, read, channel, told)
	}
	return s, nil
}

// name is the address for people.
func name(config *pgx.ConnConfig) string {
	host := config.Host
	if len(host) == 0 || host[0] != '/' {
		host = net.JoinHostPort(host, strconv.Itoa(int(config.Port)))
	}
	return "postgres://" + config.User + "@" + host + "/" + config.Database
}

// listen waits for what is said on a channel.
func listen(ctx context.Context, config *pgx.ConnConfig, channel string, told func(string)) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	told("")
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		told(notice.Payload)
	}
}
