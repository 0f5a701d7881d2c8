// Package pgdriver connects package db to PostgreSQL servers, with pgx. Only
// runner/postgres, tests and benchmarks import it, so a program that uses no
// server doesn't contain pgx.
package pgdriver

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/jobs"
)

const (
	defaultSchema  = "runner"
	connectTimeout = 10 * time.Second
)

// Engine returns the value for db.Options.Engine.
func Engine() *engine.Driver { return &engine.Driver{Connect: connect} }

func connect(address string, lockTimeout time.Duration) (engine.Connectors, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // its text may contain a part of the password
		return engine.Connectors{}, &jobs.Error{Kind: jobs.ErrInvalid, What: "the address of the PostgreSQL server cannot be read",
			Hint: "postgres://USER@HOST:PORT/DATABASE; the password in PGPASSWORD or ~/.pgpass"}
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}

	s := engine.Connectors{Name: name(config), Schema: cmp.Or(config.RuntimeParams["search_path"], defaultSchema)}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "runner"
	}

	set := settings(lockTimeout)
	read := session(config, set, map[string]string{"default_transaction_read_only": "on", "synchronous_commit": "off"})
	write := session(config, set, postgres.WriteSettings)
	s.Write, s.Read = stdlib.GetConnector(*write), stdlib.GetConnector(*read)
	s.SendAll = sendAll
	s.Listen = func(ctx context.Context, channel string, notify func(string)) error {
		return listen(ctx, read, channel, notify)
	}
	return s, nil
}

// name returns the address without the password and the parameters.
func name(config *pgx.ConnConfig) string {
	host := config.Host
	if len(host) == 0 || host[0] != '/' {
		host = net.JoinHostPort(host, strconv.Itoa(int(config.Port)))
	}
	return "postgres://" + config.User + "@" + host + "/" + config.Database
}

// listen calls notify with an empty text as soon as it can receive
// notifications on a channel, and then with each one's payload. It returns when
// the connection fails or ctx ends.
func listen(ctx context.Context, config *pgx.ConnConfig, channel string, notify func(string)) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}

	notify("")
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		notify(notice.Payload)
	}
}
