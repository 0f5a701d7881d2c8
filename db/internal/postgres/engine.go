package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
)

var _ engine.Engine = (*Server)(nil)

// Name returns the address without its password.
func (s *Server) Name() string { return s.Connectors.Name }

// Address returns the address as it was opened, with the password.
func (s *Server) Address() string { return s.address }

// Identity returns the address with the schema and without the password.
func (s *Server) Identity() string { return s.Name() + "?search_path=" + s.Schema }

// Dir implements engine.Shared.
func (s *Server) Dir() string { return s.dir }

// MakeDir creates the directory Dir and its parents.
func (s *Server) MakeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return engine.FileError(err, s.dir)
	}
	return nil
}

// Created reports whether Open made the tables.
func (s *Server) Created() bool { return s.created }

// UpgradedFrom implements engine.Shared.
func (s *Server) UpgradedFrom() int { return s.upgradedFrom }

// Reader returns the pool of connections that can't write.
func (s *Server) Reader() *sqlx.DB { return s.read }

// Dialect returns the dialect that renders statements.
func (s *Server) Dialect() *sqltext.Dialect { return s.sql }

// Traits returns the properties of a server, where each statement costs a round
// trip, so the writes of many tasks share a message.
func (*Server) Traits() engine.Traits {
	return engine.Traits{
		GivesIDs:         true,
		InsertMost:       1000,
		InsertsArrays:    true,
		CompletesAsJSON:  true,
		Pipelines:        true,
		FastPath:         true,
		OutlivedByClient: true,
	}
}

// WriteSettings are the parameters of the sessions that write. A session plans
// each statement once, so a plan made for a small table must be good for a
// large one, too. By default the planner would scan or hash a small table as a
// whole, and the session later read the whole large one at each claim. These
// statements find their rows by indexes, so we make the planner prefer them.
var WriteSettings = map[string]string{
	"plan_cache_mode":   "force_generic_plan",
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"enable_sort":       "off",
}

// Values converts args to values that the server accepts.
func (*Server) Values(args []any) []any {
	for i := range args {
		args[i] = argument(args[i])
	}
	return args
}

// Quit ends the watches.
func (s *Server) Quit() {
	s.quit()
	s.watches.Wait()
}

// BeforeClose does nothing.
func (*Server) BeforeClose() (release func()) { return func() {} }

// Close waits until all notifications are sent, and then closes the pools.
func (s *Server) Close() error {
	s.notifier.sending.Wait()
	var errs []error
	for _, pool := range []*sqlx.DB{s.read, s.write} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}

	return errors.Join(errs...)
}

// Begin makes the next statement begin a transaction with the write lock.
func (*Server) Begin(conn *sqlx.Conn, shared bool, _ func() error) (waited bool, err error) {
	return false, conn.Raw(func(c any) error { c.(*session).begin(shared); return nil })
}

// Later sends a statement along with the next one.
func (*Server) Later(conn *sqlx.Conn, text string, args []any) error {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: argument(arg)}
	}
	return conn.Raw(func(c any) error { c.(*session).queue(engine.Statement{Text: text, Args: values}); return nil })
}

// CommitWithNext makes the next statement also commit the transaction, which
// saves a round trip during which other writers would wait for the lock.
func (*Server) CommitWithNext(conn *sqlx.Conn) bool {
	return conn.Raw(func(c any) error { c.(*session).commits = true; return nil }) == nil
}

// SetLevel sets whether a commit is durable when it returns.
func (*Server) SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error {
	text := "SET synchronous_commit = off"
	if durable {
		text = "SET synchronous_commit = on"
	}
	_, err := conn.ExecContext(ctx, text)
	return err
}

// These methods do nothing: only files need them, or the server does their
// work.

func (*Server) Replaced() error                                   { return nil }
func (*Server) Committed(bool) error                              { return nil }
func (*Server) Rest(time.Duration)                                {}
func (*Server) Space() error                                      { return nil } // the server reports a full disk itself
func (*Server) Used(engine.Querier) (int64, error)                { return 0, nil }
func (*Server) Vacuum(context.Context, *sqlx.Conn) (bool, error)  { return false, nil }
func (*Server) Integrity(context.Context, bool) ([]string, error) { return nil, nil } // the administrator of the server can run pg_amcheck
func (*Server) Readers() []engine.Process                         { return nil }
func (*Server) Unclean() bool                                     { return false }
func (*Server) CheckSchema(context.Context) error                 { return nil } // only the owner of the tables can add a trigger

// Size returns the size of runner's tables and their indexes.
func (s *Server) Size() (file, wal int64) {
	_ = s.read.Get(&file, s.sql.Text(serverSize), s.Schema) // 0 after an error
	return file, 0
}

// Backup and BackupFile return an error: the server has its own tools for that.

func (s *Server) Backup(context.Context, string, bool) (int64, error) { return 0, s.noBackup() }
func (s *Server) BackupFile(context.Context) (string, error)          { return "", s.noBackup() }

// These statements read and set the sequences that assign ids. The names of the
// tables are parameters.
var (
	serverHighestID = sqltext.Query(`SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence(?, 'id') AS regclass)), 0)`)
	serverSetID     = sqltext.Command(`SELECT setval(CAST(pg_get_serial_sequence(?2, 'id') AS regclass), CAST(?1 AS bigint))`)
	serverSetWorker = sqltext.Command(`SELECT setval(CAST(pg_get_serial_sequence(?,
		'number') AS regclass), (SELECT coalesce(max(number), 0) + 1 FROM {workers}))`)
)

// HighestID returns the highest id that a task ever had.
func (s *Server) HighestID(ctx context.Context) (id int64, err error) {
	err = s.read.GetContext(ctx, &id, s.sql.Text(serverHighestID), s.sql.Prefix+"tasks")
	return id, s.Explain(err)
}

// RaiseIDs makes the id of the next task higher than last, and the number of
// the next worker higher than all in the table workers.
func (s *Server) RaiseIDs(ctx context.Context, q engine.Querier, last int64) error {
	own, err := s.HighestID(ctx)
	if err != nil {
		return err
	}

	var set int64
	if own < last {
		if err := q.Scan(serverSetID, []any{last, s.sql.Prefix + "tasks"}, &set); err != nil {
			return err
		}
	}

	return q.Scan(serverSetWorker, []any{s.sql.Prefix + "workers"}, &set)
}

// These statements create and drop the triggers that reject writes to a frozen
// database.
var (
	freezeFunction = sqltext.Definition(`CREATE FUNCTION {moving}() RETURNS trigger LANGUAGE plpgsql AS $moving$ BEGIN
	RAISE EXCEPTION USING ERRCODE = '` + writesFrozen + `', MESSAGE = {message}; END $moving$`)
	freezeTable = sqltext.Definition(`CREATE TRIGGER {trigger} BEFORE INSERT OR UPDATE OR DELETE ON {table}
	FOR EACH ROW EXECUTE FUNCTION {moving}()`)
	thawFunction = sqltext.Definition(`DROP FUNCTION {moving}() CASCADE`).With(nil)
)

// Freezing returns the statements that create these triggers.
func (*Server) Freezing(message string) []*sqltext.Statement {
	list := []*sqltext.Statement{freezeFunction.With(sqltext.Parts{"message": sqltext.Literal(message)})}
	for _, table := range engine.FrozenTables {
		list = append(list, freezeTable.With(sqltext.Parts{"trigger": "moving_" + table, "table": "{" + table + "}"}))
	}
	return list
}

// Thawing returns the statement that drops them.
func (*Server) Thawing() []*sqltext.Statement { return []*sqltext.Statement{thawFunction} }
