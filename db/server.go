package db

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// On a server the tables are in a schema of their own, and everything that SQLite's one write lock gives is given by one advisory lock of
// that schema: each of our transactions takes it first, and the server lets it go with the end of the transaction, or of its connection. So
// what is decided by reading and writing (limits, lanes, dependencies, ticks) is decided as in a file, by the same statements, and no two
// of our transactions can lock each other out. Those that decide nothing hold it together (plain.go). Readers wait for nobody.

// SelectBackend tells which process of the server answers.
const SelectBackend = `SELECT pg_backend_pid()`

// What is asked of a server when it is opened: its version, whether our tables are there and what time it is; and the row about them.
var (
	serverVersion = query(`SELECT CAST(current_setting('server_version_num') AS bigint), to_regclass(?) IS NOT NULL,
	CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)`)
	selectOurs = query(`SELECT version, id FROM {runner_schema}`)
	setVersion = command(`UPDATE {runner_schema} SET version = ?`)
	hasSchema  = query(`SELECT to_regnamespace(?) IS NOT NULL`)
)

// leastServer is the oldest version of PostgreSQL that is supported.
const leastServer = 130000

// server is what a database on a server has in place of a file.
type server struct {
	Server
	address string
	begins  begins
	lock    int64         // the number of the advisory lock that all writers of the schema take
	version int64         // of PostgreSQL, as 150004
	skew    time.Duration // of the clock of this host ahead of the server's, when it was last connected
	id      string        // of the database: it stays when the server moves
	dir     string        // on this host
	noticer noticer
}

// begins are the statements that take the write lock at the beginning of a transaction.
type begins struct {
	exclusive string
	shared    string // together with other transactions that begin so
}

// lockExclusive takes the advisory lock [1] for the rest of a transaction; lockTogether takes it together with others.
const (
	lockExclusive = `SELECT pg_advisory_xact_lock(%d)`
	lockTogether  = `SELECT pg_advisory_xact_lock_shared(%d)`
)

// newServer prepares a database on a server; nothing is dialled.
func newServer(address string, o Options) (*server, error) {
	if o.Engine == nil {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "this program has no driver for PostgreSQL",
			Why: []string{"a database on a server needs an engine"}, Hint: "Options{Engine: postgres.Engine()} of package runner/postgres"}
	}
	if o.Prefix != "" || o.Beside {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "a prefix is for files: on a server the tables have a schema of their own", Hint: "postgres://…?search_path=NAME"}
	}
	s := &server{address: address}
	var err error
	if s.Server, err = o.Engine.Connect(address, o.BusyTimeout); err != nil {
		return nil, err
	}
	if err := ValidPrefix(s.Schema); err != nil || s.Schema == "" {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the schema %q cannot be", s.Schema), Why: []string{"lower case letters, digits and _, at most 32"}}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte("runner " + s.Schema))
	s.lock = int64(hash.Sum64())
	s.begins.exclusive = fmt.Sprintf(lockExclusive, s.lock)
	s.begins.shared = fmt.Sprintf(lockTogether, s.lock)
	return s, nil
}

// openServer is open for a database on a server.
func (d *DB) openServer(ctx context.Context) error {
	d.write = d.server.pool(d.server.Write, 2, false) // of the writer, and of claims
	d.read = d.server.pool(d.server.Read, 4, true)
	have, err := d.connectServer(ctx)
	if err != nil || have == ServerSchemaVersion() {
		return err
	}
	switch {
	case have == 0 && !d.options.Create:
		return &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.NoTables, Subject: d.path, What: "no tables of runner in " + d.path,
			Why: []string{"it has no schema " + d.server.Schema + " with them"}}
	case d.options.ReadOnly:
		return &jobs.Error{Kind: jobs.ErrSchema, What: d.path + " has an older schema", Why: []string{"it is opened for reading, and not upgraded"}}
	}
	d.created = have == 0
	if err := d.migrateServer(ctx); err != nil {
		return explain(err, d.path)
	}
	_, err = d.connectServer(ctx)
	return err
}

// ServerSchemaVersion returns the version of the schema on servers that this program writes.
func ServerSchemaVersion() int {
	return lastVersion("schema/postgres")
}

// connectServer opens the writer's connection and returns the version of the schema; 0: there is none.
func (d *DB) connectServer(ctx context.Context) (have int, err error) {
	if d.conn == nil {
		if d.conn, err = d.write.Connx(ctx); err != nil {
			return 0, explain(err, d.path)
		}
	}
	d.level = full
	s := d.server
	var some bool
	s.skew, err = measure(func() (at time.Time, err error) {
		var ms number
		err = d.conn.QueryRowxContext(ctx, d.sql.Text(serverVersion), s.Schema+".runner_schema").Scan(&s.version, &some, &ms)
		return ms.time(), err
	})
	if err != nil {
		return 0, explain(err, d.path)
	}
	if err := skewed(s.skew, d.path); err != nil && !d.options.ReadOnly {
		return 0, err
	}
	if s.version < leastServer {
		return 0, &jobs.Error{Kind: jobs.ErrSchema, What: fmt.Sprintf("PostgreSQL %d is too old", s.version/10000), Why: []string{d.path, "13 or later is needed"}}
	}
	if !some {
		return 0, nil
	}
	var id string
	if err := d.conn.QueryRowxContext(ctx, d.sql.Text(selectOurs)).Scan(&have, &id); err != nil {
		return 0, explain(err, d.path)
	}
	if s.id == "" {
		s.id = id
	}
	if s.id != id {
		return 0, d.replacedServer()
	}
	if first := migrationFiles("schema/postgres")[0].version; have < first {
		return 0, &jobs.Error{Kind: jobs.ErrSchema, What: d.path + " was written by an older runner",
			Why:  []string{fmt.Sprintf("its schema is %d, this one knows %d and later", have, first)},
			Hint: "move its tasks to a file with the older runner, then DROP SCHEMA " + s.Schema + " CASCADE, then move them back with this one"}
	}
	if want := ServerSchemaVersion(); have > want {
		return 0, &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.NewerServer, Subject: d.path, What: d.path + " was written by a newer runner",
			Why: []string{fmt.Sprintf("its schema is %d, this one knows %d; opening could damage it", have, want)}, Hint: "upgrade this program, or use another database"}
	}
	if s.dir == "" {
		s.dir, err = stateDir(d.options.Dir, s.id)
	}
	return have, err
}

// reconnect opens a writer's connection, or opens it anew, to the same tables as before.
func (w *writer) reconnect(ctx context.Context) (err error) {
	d, have := w.db, 0
	if w == &d.writer {
		have, err = d.connectServer(ctx)
	} else if w.conn, err = d.write.Connx(ctx); err == nil {
		var id string
		w.level = full
		if err = w.conn.QueryRowxContext(ctx, d.sql.Text(selectOurs)).Scan(&have, &id); err == nil && id != d.server.id {
			err = d.replacedServer()
		}
	}
	if err == nil && have != ServerSchemaVersion() {
		err = d.replacedServer()
	}
	return explain(err, d.path)
}

func (d *DB) replacedServer() error {
	return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced: " + d.path, Why: []string{"its tables are not those that were opened"}}
}

// migrateServer makes the schema, or brings it to the present version, in one transaction. It is a no-op when another process was quicker.
func (d *DB) migrateServer(ctx context.Context) (err error) {
	if _, err := d.conn.ExecContext(ctx, "BEGIN; "+d.server.begins.exclusive); err != nil {
		return err
	}
	defer func() { _, _ = d.conn.ExecContext(context.WithoutCancel(ctx), rollback.Template) }() // a warning once committed
	have, err := d.connectServer(ctx)
	if err != nil {
		return err
	}
	schema := d.server.Schema
	if have == 0 {
		var some bool
		if err := d.conn.QueryRowxContext(ctx, d.sql.Text(hasSchema), schema).Scan(&some); err != nil {
			return err
		}
		if !some { // one that was made for us need not be made by us
			if _, err := d.conn.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
				return err
			}
		}
	}
	if _, err := d.conn.ExecContext(ctx, "SET LOCAL search_path = "+schema); err != nil {
		return err
	}
	for _, m := range migrationFiles("schema/postgres") {
		if m.version <= have {
			continue
		}
		if err := d.script(ctx, m.text()); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(m.path), err)
		}
	}
	if _, err := d.conn.ExecContext(ctx, d.sql.Text(setVersion), ServerSchemaVersion()); err != nil {
		return err
	}
	_, err = d.conn.ExecContext(ctx, commit.Template)
	return err
}

// script sends statements as they are written.
func (d *DB) script(ctx context.Context, text string) error {
	return d.conn.Raw(func(conn any) error {
		_, err := conn.(*serverConn).serverDriverConn.ExecContext(ctx, text, nil)
		return err
	})
}

// stateDir is the directory of this host for what belongs to a database on a server: results on their way, locks by which workers of
// one host know each other alive. It is not made yet.
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

// ServerInfo tells of the server that a database is on.
type ServerInfo struct {
	Version int64         // of PostgreSQL, as 150004
	Schema  string        // with our tables
	Tables  int           // the version of these
	Skew    time.Duration // of the clock of this host ahead of the server's
}

// Server tells of the server; nil: the database is a file.
func (d *DB) Server() *ServerInfo {
	if d.server == nil {
		return nil
	}
	return &ServerInfo{Version: d.server.version, Schema: d.server.Schema, Tables: ServerSchemaVersion(), Skew: d.server.skew}
}

var errNoServer = errors.New("no connection to the server")

// serverSize adds up what our tables take, with their indexes.
var serverSize = query(`SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS bigint) FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(?)`)

// noBackup says how a database on a server is backed up.
func (d *DB) noBackup() error {
	return &jobs.Error{Kind: jobs.ErrInvalid, What: "a database on a server is backed up by the server's own tools",
		Why: []string{d.path}, Hint: "pg_dump --schema=" + d.server.Schema}
}

// outerServer is asked of a transaction of the caller's: which of ours it would see, and the lock.
var outerServer = query(`SELECT id, CAST(pg_advisory_xact_lock(?) AS text) FROM {runner_schema}`)

// withinServer looks whether a transaction of the caller's is of the same database, and takes the write lock for the rest of it.
func (d *DB) withinServer(t *tx) error {
	var id, locked string
	err := t.scan(outerServer, []any{d.server.lock}, &id, &locked)
	switch {
	case sqlState(err) == undefinedTable || err == nil && id != d.server.id:
		return &jobs.Error{Kind: jobs.ErrInvalid, What: "the transaction is of another database", Why: []string{"this one is " + d.path},
			Hint: "begin it on a handle that was opened with this address"}
	case err != nil:
		return explain(err, d.path)
	}
	return nil
}

// selectServerTriggers lists the triggers of our tables.
var selectServerTriggers = query(`SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND relnamespace = to_regnamespace(?) ORDER BY tgname`)

// foreignOnServer is Foreign: somebody else's triggers act in each write of a worker.
func (d *DB) foreignOnServer(ctx context.Context) error {
	type trigger struct {
		Table string `db:"relname"`
		Name  string `db:"tgname"`
	}
	all, err := readRows[trigger](ctx, d, selectServerTriggers, d.server.Schema)
	if err != nil {
		return err
	}
	own := []string{"enqueue_insert", "schedules_keep", "tasks_reopened"}
	for _, trigger := range all {
		if !slices.Contains(own, trigger.Name) && slices.Contains(made(), trigger.Table) {
			return &jobs.Error{Kind: jobs.ErrSchema, What: fmt.Sprintf("%s has a trigger %q on runner's %s", d.path, trigger.Name, trigger.Table),
				Why: []string{"whoever did that decides about what workers do; nothing was changed"}, Hint: fmt.Sprintf("DROP TRIGGER %q, if you know whose it is", trigger.Name)}
		}
	}
	return nil
}
