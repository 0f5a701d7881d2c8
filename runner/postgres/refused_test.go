package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/runner/db"
	"example.com/runner/db/pgdriver"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// secret is the password of the user ann.
const secret = "s3cret-of-ann"

// strict starts a server that asks every user except postgres for a password.
// The user bob has the right to connect, and no other rights.
func strict(t *testing.T) *pgserver.Server {
	t.Helper()
	s := pgkit.Start(t)
	rules := "local all postgres trust\nlocal all all scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(s.Dir, "data", "pg_hba.conf"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}

	raw := handle(t, s.Address("postgres"))
	for _, text := range []string{"CREATE ROLE ann LOGIN PASSWORD '" + secret + "'", "CREATE ROLE bob LOGIN PASSWORD 'of-bob'",
		"GRANT CREATE ON DATABASE postgres TO ann", "SELECT pg_reload_conf()"} {
		if _, err := raw.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}

	testkit.Within(t, patience, "the server asks for passwords", func() bool {
		other, err := sql.Open("pgx", as(t, s.Address("postgres"), "bob", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		return other.PingContext(t.Context()) != nil
	})
	return s
}

func handle(t *testing.T, address string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { raw.Close() })
	return raw
}

// as returns the address with the given user and password in place of its own
// user and password.
func as(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if u.User = url.User(user); password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

func TestErrorOfRejectedUserNamesReason(t *testing.T) {
	s := strict(t)
	address := s.Address("postgres")
	for name, c := range map[string]struct {
		address string
		kind    error
		says    string
	}{
		"no password":           {as(t, address, "ann", ""), jobs.ErrPermission, "rejects this user or password"},
		"a wrong password":      {as(t, address, "ann", "not-"+secret), jobs.ErrPermission, "rejects this user or password"},
		"no such user":          {as(t, address, "carl", secret), jobs.ErrPermission, "rejects this user or password"},
		"no right to make them": {as(t, address, "bob", "of-bob"), jobs.ErrPermission, "the user lacks a permission in"},
		"no such database":      {as(t, s.Address("nothere"), "ann", secret), jobs.ErrNoDatabase, "no such database"},
		"no server":             {"postgres://ann:" + secret + "@127.0.0.1:1/x", jobs.ErrBusy, "no connection to"},
		"no address":            {"postgres://ann:" + secret + "@h:port/x", jobs.ErrInvalid, "cannot be read"},
		"a port that is none":   {"postgres://ann:" + secret + "@h:99999/x", jobs.ErrInvalid, "cannot be read"},
		"a schema that cannot be": {as(t, s.Address("postgres", `search_path=a";drop`), "ann", secret), jobs.ErrInvalid,
			"invalid schema"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := runner.Open(t.Context(), c.address, runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
			if err == nil {
				r.Close()
			}
			if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Fatalf("%v, want one of kind %v that says %q", err, c.kind, c.says)
			}
			// No error of the chain may contain the password, because --verbose
			// prints all of them.
			for e := err; e != nil; e = errors.Unwrap(e) {
				text := fmt.Sprintf("%v %+v", e, e)
				testkit.ContainsNone(t, text, secret)
				testkit.ContainsNone(t, text, "of-bob")
			}
		})
	}
	schemas := count1(t, handle(t, address), `SELECT count(*) FROM pg_namespace WHERE nspname = 'runner'`)
	testkit.Equal(t, "schemas after the rejected open", schemas, 0)

	r := open(t, as(t, address, "ann", secret), runner.Options{})
	testkit.ContainsNone(t, admin.Path(r), secret)
	for _, text := range []string{"GRANT USAGE ON SCHEMA runner TO bob", "GRANT SELECT ON ALL TABLES IN SCHEMA runner TO bob"} {
		if _, err := handle(t, address).ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}

	reader := open(t, as(t, address, "bob", "of-bob"), runner.Options{})
	_, err := reader.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	_, err = reader.EnqueueMany(t.Context(), jobs.Command(command.Command{Argv: []string{"true"}}))
	testkit.ErrorIs(t, err, jobs.ErrPermission)
}

func count1(t *testing.T, raw *sql.DB, query string) (n int) {
	t.Helper()
	if err := raw.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// older connects to a server that reports version 13 of PostgreSQL.
type older struct{ driver.Connector }

func (o older) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := o.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return olderConn{conn.(*stdlib.Conn)}, nil
}

type olderConn struct{ *stdlib.Conn }

func (c olderConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, strings.Replace(text, "current_setting('server_version_num')", "'130022'", 1), args)
}

// TestTablesThatAreNotRunnersAreRejected checks that Open doesn't change tables
// of a newer program, and names a missing column.
func TestTablesThatAreNotRunnersAreRejected(t *testing.T) {
	at := pgkit.Address(t)
	open(t, at, runner.Options{})
	server, err := pgdriver.Engine().Connect(at, time.Second)
	if err != nil {
		t.Fatal(err)
	}

	raw := sql.OpenDB(server.Write)
	defer raw.Close()

	// The missing column comes last: nothing can be read without it.
	changes := []struct{ change, says string }{
		{"UPDATE runner_schema SET version = 1000", "was written by a newer runner"},
		{"UPDATE runner_schema SET version = 1; ALTER TABLE runner_schema DROP COLUMN id", "the tables are not those of schema"},
	}
	for _, c := range changes {
		if _, err := raw.ExecContext(t.Context(), "SET search_path = "+server.Schema+";"+c.change); err != nil {
			t.Fatal(err)
		}
		r, err := runner.Open(t.Context(), at, runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
		if err == nil {
			r.Close()
		}
		if !errors.Is(err, jobs.ErrSchema) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v, want %v with %q", c.change, err, jobs.ErrSchema, c.says)
		}
	}
}

func TestOldServerIsRejected(t *testing.T) {
	engine := pgdriver.Engine()
	connect := engine.Connect
	engine.Connect = func(address string, patience time.Duration) (db.Server, error) {
		s, err := connect(address, patience)
		s.Write = older{s.Write}
		return s, err
	}
	r, err := runner.Open(t.Context(), pgkit.Address(t), runner.Options{Engine: runner.Engine{Driver: engine}, Dir: t.TempDir()})
	if err == nil {
		r.Close()
	}
	testkit.ErrorIs(t, err, jobs.ErrSchema, "PostgreSQL 13 is too old")
}

// silent is a server that ends each query without an error and without an
// answer.
func silent(conn net.Conn) {
	defer conn.Close()

	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}

	server.Send(&pgproto3.AuthenticationOk{})
	for {
		server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if server.Flush() != nil {
			return
		}
		if _, err := server.Receive(); err != nil {
			return
		}
		server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SET")})
	}
}

func TestServerThatDoesNotAnswerIsReported(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go silent(conn)
		}
	}()
	at := "postgres://runner@" + listener.Addr().String() + "/x?sslmode=disable"
	r, err := runner.Open(t.Context(), at, runner.Options{Engine: postgres.Engine(), Dir: t.TempDir(), BusyTimeout: time.Millisecond})
	if err == nil {
		r.Close()
	}
	testkit.ErrorContains(t, err, "the server returned no row")
}
