package postgres_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/internal/present"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/runner"
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

// TestTheCommandOfAProblemSolvesIt checks that the command that a problem names ends it.
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
	message = regexp.MustCompile(`for [2-5]m`).ReplaceAllString(message, "for 2m") // on a busy machine more time passes
	testkit.Contains(t, message, "(report, user postgres) has held a snapshot for 2m")
	solve(t, admins, r, "snapshot_held", try)
	testkit.ErrorContains(t, <-ended, "terminating connection")
}
