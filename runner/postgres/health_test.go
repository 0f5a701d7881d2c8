package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/doctor"
	"example.com/runner/internal/present"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/runner"
)

// connection opens a connection that runs some statements and stays open until the end of the test.
func connection(t *testing.T, address string, statements ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	run(t, conn, statements...)
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: got error %v, want none", text, err)
		}
	}
}

// codes returns the codes of the problems of a server. It reads the health with a time two minutes in the future, so that open transactions
// count as old.
func codes(t *testing.T, r *runner.Runner) (list []string, health *admin.ServerHealth) {
	t.Helper()
	later := time.Now().Add(2 * time.Minute)
	health, err := admin.Store(r).Health(t.Context(), later)
	testkit.NoError(t, err)
	for _, p := range present.ServerProblems(health, later) {
		list = append(list, p.Code)
	}
	return list, health
}

func TestTheHealthOfAServerNamesWhatHoldsSnapshotsAndLocks(t *testing.T) {
	server := pgkit.Start(t, "fsync=off")
	at := server.Address("postgres")
	r := open(t, at, runner.Options{})
	list, _ := codes(t, r)
	testkit.Equal(t, "problems of a new server", list, nil)

	reader := connection(t, server.Address("postgres", "application_name=report"), "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	list, health := codes(t, r)
	testkit.Equal(t, "problems with an idle reader", list, []string{"idle_in_transaction"})
	session := health.Sessions[0]
	testkit.Equal(t, "session", session.Application+" "+session.User, "report postgres")
	testkit.Equal(t, "pid", session.PID, int(reader.PgConn().PID()))
	if !session.Snapshot || session.Begun.IsZero() || session.QueryBegun.Before(session.Begun) {
		t.Errorf("got session %+v, want a snapshot and times", session)
	}
	want := fmt.Sprintf(`psql -c "SELECT pg_terminate_backend(%d)"`, session.PID)
	later := time.Now().Add(2 * time.Minute)
	status, err := present.ReadStatus(t.Context(), r, later, nil)
	testkit.NoError(t, err)
	testkit.Equal(t, "the status has the problem", len(status.Problems) == 1 && status.Problems[0].Try == want, true)
	warned := false
	testkit.NoError(t, (&doctor.Doctor{Runner: r, Now: later, Path: at}).Run(t.Context(), func(c doctor.Check) error {
		warned = warned || c.Check == "sessions" && c.Status == doctor.Warn && c.Try == want
		return nil
	}))
	testkit.Equal(t, "doctor warns of the session", warned, true)
	testkit.NoError(t, reader.Close(t.Context()))
	testkit.Within(t, patience, "the server ends the session of the reader", func() bool {
		list, _ = codes(t, r)
		return len(list) == 0
	})

	tx, err := handle(t, at).BeginTx(t.Context(), nil)
	testkit.NoError(t, err)
	_, err = r.EnqueueTx(t.Context(), tx, count.With(1))
	testkit.NoError(t, err)
	list, health = codes(t, r)
	testkit.Equal(t, "problems with an open transaction of EnqueueTx", list, []string{"lock_held"})
	testkit.Equal(t, "it has the lock", health.Sessions[0].HasLock, true)
	testkit.NoError(t, tx.Rollback())
}

// TestARoleWithFewRightsSeesWhatTheServerShows checks the health that a role without pg_monitor sees.
func TestARoleWithFewRightsSeesWhatTheServerShows(t *testing.T) {
	server, name := pgkit.Shared(t), pgkit.NewSchema() // the role has the name of the schema
	at := server.Address("postgres", "search_path="+name)
	open(t, at, runner.Options{})
	to := " TO " + name
	admins := connection(t, at, "CREATE ROLE "+name+" LOGIN", "GRANT USAGE ON SCHEMA "+name+to,
		"GRANT SELECT ON ALL TABLES IN SCHEMA "+name+to,
		"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	r := open(t, as(t, at, name, ""), runner.Options{ReadOnly: true})
	_, health := codes(t, r)
	testkit.Equal(t, "hidden", health.Unseen, true)
	testkit.Equal(t, "user", health.User, name)
	found := slices.IndexFunc(health.Sessions, func(s admin.Session) bool { return s.PID == int(admins.PgConn().PID()) })
	if found < 0 || !health.Sessions[found].Begun.IsZero() || !health.Sessions[found].Snapshot {
		t.Errorf("got sessions %+v, want that of the reader, with a snapshot and without times", health.Sessions)
	}
	run(t, admins, "COMMIT", "GRANT pg_monitor"+to)
	_, health = codes(t, r)
	testkit.Equal(t, "hidden from a member of pg_monitor", health.Unseen, false)
}
