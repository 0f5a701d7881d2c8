// Package pgdriver connects package db to PostgreSQL servers, with pgx. Only
// runner/postgres, tests and benchmarks import it, so a program that uses no
// server doesn't contain pgx.
package pgdriver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
func Engine() *engine.Driver {
	return &engine.Driver{Connect: func(address string, lockTimeout time.Duration) (engine.Connectors, error) {
		config, err := parse(address)
		if err != nil {
			return engine.Connectors{}, err
		}
		schema := cmp.Or(config.RuntimeParams["search_path"], defaultSchema)
		return connectors(&pgxpool.Config{ConnConfig: config}, schema, lockTimeout), nil
	}}
}

// EngineOf returns an engine that connects as a pool with this config does, and
// the address of its database, without a password.
func EngineOf(config *pgxpool.Config, schema string) (of *engine.Driver, address string) {
	schema = cmp.Or(schema, defaultSchema)
	c := config.ConnConfig
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database, RawQuery: url.Values{
		"host": {c.Host}, "port": {strconv.Itoa(int(c.Port))}, "search_path": {schema}}.Encode()}
	return &engine.Driver{Connect: func(_ string, lockTimeout time.Duration) (engine.Connectors, error) {
		config := config.Copy()
		// With a function here, listen would get no notification. The tracer is
		// for the statements of the program.
		config.ConnConfig.OnNotification, config.ConnConfig.Tracer = nil, nil
		return connectors(config, schema, lockTimeout), nil
	}}, u.String()
}

func parse(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil { // its text may contain a part of the password
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "the address of the PostgreSQL server cannot be read",
			Hint: "postgres://USER@HOST:PORT/DATABASE; the password in PGPASSWORD or ~/.pgpass"}
	}
	return config, nil
}

func connectors(of *pgxpool.Config, schema string, lockTimeout time.Duration) engine.Connectors {
	config := of.ConnConfig
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}

	s := engine.Connectors{Name: name(config), Schema: schema}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "runner"
	}

	set := settings(lockTimeout)
	read := session(of, set, map[string]string{"default_transaction_read_only": "on", "synchronous_commit": "off"})
	write := session(of, set, postgres.WriteSettings)
	var hooks []stdlib.OptionOpenDB
	if of.BeforeConnect != nil {
		hooks = append(hooks, stdlib.OptionBeforeConnect(of.BeforeConnect))
	}
	if of.AfterConnect != nil {
		hooks = append(hooks, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			err := of.AfterConnect(ctx, c)
			if err != nil {
				_ = c.Close(ctx) // database/sql never gets this connection, and pgx leaves it open
			}
			return err
		}))
	}

	s.Write, s.Read = stdlib.GetConnector(*write, hooks...), stdlib.GetConnector(*read, hooks...)
	s.SendAll = sendAll
	s.Listen = func(ctx context.Context, channel string, notify func(string)) error {
		return listen(ctx, s.Read, channel, notify)
	}
	return s
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
func listen(ctx context.Context, connector driver.Connector, channel string, notify func(string)) error {
	opened, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	conn := opened.(*stdlib.Conn).Conn()
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
