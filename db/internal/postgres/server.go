package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// On a server the tables are in a schema of their own. Each such schema has one
// advisory lock in place of SQLite's single write lock. Each transaction of
// runner takes it first, and the server releases it at the end of the
// transaction or of the connection. So code that reads and then writes (limits,
// lanes, dependencies, ticks) uses the same statements as in a file, and
// transactions of runner can't deadlock. Those without such code share the lock
// (fastpath.go of package db). Readers take no lock.

// SelectBackend returns the id of a connection's server process.
const SelectBackend = `SELECT pg_backend_pid()`

// serverVersion reads the version of the server, whether the table [1] exists,
// and the server's time. selectOurs reads the version of the tables and the id
// of the database.
var (
	serverVersion = sqltext.Query(`SELECT CAST(current_setting('server_version_num') AS bigint), to_regclass(?) IS NOT NULL,
	CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)`)
	selectOurs = sqltext.Query(`SELECT version, id FROM {runner_schema}`)
	setVersion = sqltext.Command(`UPDATE {runner_schema} SET version = ?`)
	hasSchema  = sqltext.Query(`SELECT to_regnamespace(?) IS NOT NULL`)
)

// oldestVersion is the oldest version of PostgreSQL that we support.
const oldestVersion = 140000

// Server is a database on a PostgreSQL server. It implements engine.Engine.
type Server struct {
	engine.Connectors
	options engine.Options
	address string
	lock    int64 // number of the advisory lock that all writers of the schema take
	sql     *sqltext.Dialect

	version      int64         // of PostgreSQL, such as 150004
	skew         time.Duration // how far this host's clock was ahead of the server's at the last connect
	id           string        // of the database, which stays when the server gets another address
	dir          string        // on this host, for the files of the database
	created      bool
	upgradedFrom int // version of the schema before Open upgraded it; 0 if Open upgraded nothing

	write *sqlx.DB // two connections: for the writer and for the second writer
	read  *sqlx.DB // connections that can't write

	notifier notifier
	watches  sync.WaitGroup
	life     context.Context // ends with quit, and ends the watches
	quit     func()
}

// takeLock returns the statement that takes the write lock for the rest of a
// transaction. Several transactions can hold a shared lock at the same time.
func (s *Server) takeLock(shared bool) string {
	if shared {
		return "SELECT pg_advisory_xact_lock_shared(" + strconv.FormatInt(s.lock, 10) + ")"
	}
	return "SELECT pg_advisory_xact_lock(" + strconv.FormatInt(s.lock, 10) + ")"
}

// New prepares a database on a server, without connecting.
func New(address string, o engine.Options) (*Server, error) {
	if o.Engine == nil {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "this program has no driver for PostgreSQL",
			Why: []string{"a database on a server needs an engine"}, Hint: "Options{Engine: postgres.Engine()} of package runner/postgres"}
	}
	if o.Prefix != "" || o.Beside {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "a prefix is for files: on a server the tables have a schema of their own",
			Hint: "postgres://…?search_path=NAME"}
	}

	s := &Server{address: address, options: o}
	s.life, s.quit = context.WithCancel(context.Background())
	s.notifier.self = rand.Text()
	var err error
	if s.Connectors, err = o.Engine.Connect(address, o.BusyTimeout); err != nil {
		return nil, err
	}
	if !schema.ValidPrefix(s.Schema) || s.Schema == "" {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("invalid schema %q", s.Schema),
			Why: []string{"lower case letters, digits and _, at most 32"}}
	}

	s.sql = Dialect(s.Schema)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte("runner " + s.Schema))
	s.lock = int64(hash.Sum64())
	return s, nil
}

// Open opens the pools, and creates or upgrades the tables if the options say
// so.
func (s *Server) Open(ctx context.Context) (_ *sqlx.Conn, err error) {
	s.write = s.pool(s.Write, 2, false)
	s.read = s.pool(s.Read, 4, true)
	conn, err := s.write.Connx(ctx)
	if err != nil {
		return nil, s.Explain(err)
	}
	defer func() {
		if err != nil {
			conn.Close() // closing the pool doesn't close a connection in use
		}
	}()

	have, err := s.connect(ctx, conn)
	if err != nil || have == schema.Version(schema.Postgres) {
		return conn, err
	}

	switch {
	case have == 0 && !s.options.Create:
		return nil, &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.NoTables, Subject: s.Name(),
			What: "no tables of runner in " + s.Name(), Why: []string{"it has no schema " + s.Schema + " with them"}}
	case s.options.ReadOnly:
		return nil, engine.NotUpgraded(s.Name())
	}

	s.created, s.upgradedFrom = have == 0, have
	if err := s.migrate(ctx, conn); err != nil {
		return nil, s.Explain(err)
	}

	_, err = s.connect(ctx, conn)
	return conn, err
}

// connect checks a new connection. It returns the version of the schema, or 0.
func (s *Server) connect(ctx context.Context, conn *sqlx.Conn) (have int, err error) {
	some, err := s.readServer(ctx, conn)
	if err != nil {
		return 0, s.Explain(err)
	}
	if err := checkSkew(s.skew, s.Name()); err != nil && !s.options.ReadOnly {
		return 0, err
	}
	if s.version < oldestVersion {
		return 0, &jobs.Error{Kind: jobs.ErrSchema, What: fmt.Sprintf("PostgreSQL %d is too old", s.version/10000),
			Why: []string{s.Name(), "14 or later is needed"}}
	}
	if !some {
		return 0, nil
	}

	if have, err = s.tables(ctx, conn); err != nil {
		return 0, err
	}
	if s.dir == "" {
		s.dir, err = stateDir(s.options.Dir, s.id)
	}

	return have, err
}

// tables returns the version of the tables. It returns an error if they aren't
// those that Open has found, or if a newer program made them.
func (s *Server) tables(ctx context.Context, conn *sqlx.Conn) (have int, err error) {
	var id string
	if err := conn.QueryRowxContext(ctx, s.sql.Text(selectOurs)).Scan(&have, &id); err != nil {
		return 0, s.Explain(err)
	}
	if s.id == "" {
		s.id = id
	}

	want := schema.Version(schema.Postgres)
	switch {
	case s.id != id:
		return 0, s.replaced()
	case have > want:
		return 0, engine.Newer(s.Name(), errcode.NewerServer, have, want, "upgrade this program, or use another database")
	}

	return have, nil
}

// Reconnect opens a new connection. It returns an error if the address now
// leads to another database, or to a schema of another version.
func (s *Server) Reconnect(ctx context.Context) (*sqlx.Conn, error) {
	conn, err := s.write.Connx(ctx)
	if err != nil {
		return nil, s.Explain(err)
	}

	have, err := s.tables(ctx, conn)
	if err == nil && have != schema.Version(schema.Postgres) {
		err = s.replaced()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}

	return conn, nil
}

func (s *Server) replaced() error {
	return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced: " + s.Name(),
		Why: []string{"its tables are not those that were opened"}}
}

// migrate creates or upgrades the schema in one transaction. It does nothing if
// another process has done that.
func (s *Server) migrate(ctx context.Context, conn *sqlx.Conn) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN; "+s.takeLock(false)); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // only a warning after a COMMIT

	have, err := s.connect(ctx, conn)
	if err != nil {
		return err
	}
	if have == 0 {
		var some bool
		if err := conn.QueryRowxContext(ctx, s.sql.Text(hasSchema), s.Schema).Scan(&some); err != nil {
			return err
		}
		if !some { // an administrator may have created the schema before
			if _, err := conn.ExecContext(ctx, "CREATE SCHEMA "+s.Schema); err != nil {
				return err
			}
		}
	}
	if _, err := conn.ExecContext(ctx, "SET LOCAL search_path = "+s.Schema); err != nil {
		return err
	}
	if have > 0 && have < schema.Version(schema.Postgres) {
		if err := engine.OlderWorker(engine.Direct{Ctx: ctx, On: conn, Dialect: s.sql}, s.Name()); err != nil {
			return err
		}
	}

	for _, m := range schema.MigrationsFrom(schema.Postgres, have) {
		if err := script(ctx, conn, m.Text()); err != nil {
			return fmt.Errorf("migration %s: %w", m.Name, err)
		}
	}

	if _, err := conn.ExecContext(ctx, s.sql.Text(setVersion), schema.Version(schema.Postgres)); err != nil {
		return err
	}

	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// script sends several statements as one text, without preparing them.
func script(ctx context.Context, conn *sqlx.Conn, text string) error {
	return conn.Raw(func(conn any) error {
		_, err := conn.(*session).driverConn.ExecContext(ctx, text, nil)
		return err
	})
}

// stateDir returns the directory on this host for the files of a database on a
// server, without creating it: results that aren't stored yet, and the lock
// files by which the workers of a host see which others are alive.
func stateDir(dir, id string) (string, error) {
	if dir != "" {
		return filepath.Join(dir, id), nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "runner", id), nil
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "no directory for what belongs to the database on this host", Err: err,
			Why: []string{"HOME is not set"}, Hint: "XDG_STATE_HOME=/path"}
	}

	return filepath.Join(home, ".local", "state", "runner", id), nil
}

// Server describes the server.
func (s *Server) Server() *engine.ServerInfo {
	return &engine.ServerInfo{Version: s.version, Schema: s.Schema, Tables: schema.Version(schema.Postgres), Skew: s.skew}
}

var errNoServer = errors.New("no connection to the server")

// serverSize returns the total size of runner's tables and their indexes.
var serverSize = sqltext.Query(`SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS bigint) FROM pg_class WHERE relkind = 'r'
	AND relnamespace = to_regnamespace(?)`)

// noBackup returns an error that says how to back up a database on a server.
func (s *Server) noBackup() error {
	return &jobs.Error{Kind: jobs.ErrInvalid, What: "a database on a server is backed up by the server's own tools",
		Why: []string{s.Name()}, Hint: "pg_dump --schema=" + s.Schema}
}

// selectOuter runs in a transaction of the caller. It reads the id of the
// database that the transaction sees. If [1] is true, it takes the write lock
// with the number [2]. If [3] is true, the commit sends an empty message on
// channel [4], which this process handles, too: it ignores only those that
// begin with notifier.self.
var selectOuter = sqltext.Query(`SELECT id, CASE WHEN ? = 1 THEN CAST(pg_advisory_xact_lock(?) AS text) END,
	CASE WHEN ? = 1 THEN CAST(pg_notify(?, '') AS text) END FROM {runner_schema}`)

// Within implements engine.Engine.
func (s *Server) Within(q engine.Querier, use engine.Use) error {
	var id string
	var locked, notified sql.NullString
	err := q.Scan(selectOuter, []any{use >= engine.Finish, s.lock, use >= engine.Change, s.channel()}, &id, &locked, &notified)
	switch {
	case sqlState(err) == undefinedTable || err == nil && id != s.id:
		return &jobs.Error{Kind: jobs.ErrInvalid, What: "the transaction is of another database", Why: []string{"this one is " + s.Name()},
			Hint: "begin it on a handle that was opened with this address"}
	case err != nil:
		return s.Explain(err)
	}

	return nil
}
