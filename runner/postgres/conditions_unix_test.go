//go:build unix

package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/internal/present"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/runner"
	"example.com/runner/test/pgserver"
)

// problem waits until the server has the problem with the given code. It returns the message of the problem, and the command that solves
// it.
func problem(t *testing.T, r *runner.Runner, code string) (message, try string) {
	t.Helper()
	testkit.Within(t, patience, "the problem "+code, func() bool {
		_, health := codes(t, r)
		for _, p := range present.ServerProblems(health, time.Now().Add(2*time.Minute)) {
			if p.Code == code {
				message, try = p.Message, p.Try
				return true
			}
		}
		return false
	})
	return message, try
}

// statements returns the SQL in a command such as psql -c "SELECT 1" -c "SELECT 2".
func statements(try string) (list []string) {
	for i, part := range strings.Split(try, `"`) {
		if i%2 == 1 {
			list = append(list, part)
		}
	}
	return list
}

// solve runs the SQL of the command that a problem names, and waits until the problem is over.
func solve(t *testing.T, admins *pgx.Conn, r *runner.Runner, code, try string) {
	t.Helper()
	run(t, admins, statements(try)...)
	testkit.Within(t, patience, "the end of the problem "+code, func() bool {
		list, _ := codes(t, r)
		return !slices.Contains(list, code)
	})
}

// TestTheCommandOfAProblemSolvesIt causes each problem on a real server, and checks that the command that the problem names solves it.
func TestTheCommandOfAProblemSolvesIt(t *testing.T) {
	at := pgkit.Start(t, "fsync=off").Address("postgres")
	r := open(t, at, runner.Options{})
	admins := connection(t, at)

	query := connection(t, at+"&application_name=report")
	ended := make(chan error, 1)
	go func() {
		_, err := query.Exec(t.Context(), "SELECT pg_sleep(600)")
		ended <- err
	}()
	message, try := problem(t, r, "snapshot_held")
	testkit.Contains(t, message, "(report, user postgres) has held a snapshot for 2m")
	solve(t, admins, r, "snapshot_held", try)
	testkit.ErrorContains(t, <-ended, "terminating connection")

	run(t, admins, "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
	_, try = problem(t, r, "autovacuum_off")
	// The rows of a transaction that is rolled back are dead.
	run(t, admins, "BEGIN", "INSERT INTO runner.inputs SELECT id, '' FROM generate_series(1, 100001) id", "ROLLBACK")
	message, vacuum := problem(t, r, "dead_rows")
	testkit.Contains(t, message, "table runner.inputs has 100001 dead rows beside 0 rows; it was never vacuumed")
	solve(t, admins, r, "dead_rows", vacuum)
	solve(t, admins, r, "autovacuum_off", try)
}

// withStandby starts a server and a standby, which uses the replication slot b, and opens their databases.
func withStandby(t *testing.T) (primary, standby *pgserver.Server, r, replica *runner.Runner, admins *pgx.Conn) {
	t.Helper()
	primary = pgkit.Start(t, "fsync=off", "full_page_writes=off", "wal_init_zero=off", "hot_standby_feedback=on",
		"wal_receiver_status_interval=1s")
	r = open(t, primary.Address("postgres"), runner.Options{})
	admins = connection(t, primary.Address("postgres"), "SELECT pg_create_physical_replication_slot('b')",
		"ALTER SYSTEM SET primary_slot_name = 'b'") // a setting for the standby, which copies the settings of this server
	standby, err := primary.Standby(t.Context())
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, standby.Close()) })
	replica = open(t, standby.Address("postgres"), runner.Options{ReadOnly: true})
	wait(t, admins, "the standby streams", "SELECT FROM pg_stat_replication WHERE state = 'streaming'")
	return primary, standby, r, replica, admins
}

// wait waits until a query returns a row.
func wait(t *testing.T, conn *pgx.Conn, what, query string) {
	t.Helper()
	testkit.Within(t, patience, what, func() bool {
		var is bool
		err := conn.QueryRow(t.Context(), "SELECT EXISTS ("+query+")").Scan(&is)
		return err == nil && is
	})
}

// TestTheHealthNamesLateStandbysAndSlots makes a standby fall behind in each way that the health of the server reports, on real servers.
func TestTheHealthNamesLateStandbysAndSlots(t *testing.T) {
	primary, standby, r, replica, admins := withStandby(t)
	list, _ := codes(t, r)
	testkit.Equal(t, "problems of the primary server", list, nil)
	reader := connection(t, standby.Address("postgres"))
	run(t, admins, "INSERT INTO runner.inputs VALUES (1, '')")
	wait(t, reader, "the standby applies a commit", "SELECT FROM runner.inputs")
	run(t, reader, "SELECT pg_wal_replay_pause()")
	run(t, admins, "INSERT INTO runner.inputs VALUES (2, '')")
	message, _ := problem(t, replica, "replica_behind")
	testkit.Contains(t, message, "this server is a standby, and applied the last commit 2m ago; ", " of the log wait")
	run(t, reader, "SELECT pg_wal_replay_resume()")

	run(t, reader, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
	wait(t, admins, "the slot holds a snapshot", "SELECT FROM pg_replication_slots WHERE xmin IS NOT NULL")
	run(t, admins, "DO $$ BEGIN FOR i IN 1..100001 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
	message, try := problem(t, r, "slot_behind")
	testkit.Contains(t, message, "the standby of replication slot b holds a snapshot that is 10")
	testkit.Contains(t, try, "end long queries")
	run(t, reader, "COMMIT", "ALTER SYSTEM RESET primary_slot_name", "SELECT pg_reload_conf()")
	wait(t, admins, "no standby uses the slot", "SELECT FROM pg_replication_slots WHERE NOT active")
	run(t, admins, "DO $$ BEGIN FOR i IN 1..100001 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
	message, try = problem(t, r, "slot_behind")
	testkit.Contains(t, message, "no standby uses replication slot b; ")
	solve(t, admins, r, "slot_behind", try)

	wait(t, admins, "the standby streams", "SELECT FROM pg_stat_replication WHERE state = 'streaming'")
	var receiver int
	testkit.NoError(t, reader.QueryRow(t.Context(), "SELECT pid FROM pg_stat_wal_receiver").Scan(&receiver))
	testkit.NoError(t, syscall.Kill(receiver, syscall.SIGSTOP))
	resume := sync.OnceFunc(func() { testkit.NoError(t, syscall.Kill(receiver, syscall.SIGCONT)) })
	defer resume()
	for i := range 66 { // write more than 1 GB to the write-ahead log: 66 segments of 16 MB
		if run(t, admins, "SELECT pg_logical_emit_message(false, '', '')", "SELECT pg_switch_wal()"); i%8 == 0 {
			run(t, admins, "CHECKPOINT") // lets the server remove old segments, so that the test needs little disk space
		}
	}
	message, _ = problem(t, r, "standby_behind")
	testkit.Contains(t, message, "standby walreceiver is ", "and has not applied 1.1 GB of the log")
	testkit.NoError(t, primary.Kill())
	resume()
	message, _ = problem(t, replica, "replica_behind")
	testkit.Contains(t, message, "this server is a standby without a connection to its primary server")
}
