package postgres_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestConnectionThatIsCutBeforeCommitIsReplaced cuts a connection just before
// the commit is sent through it. The error only says that the connection is
// closed. The next write must use another connection.
func TestConnectionThatIsCutBeforeCommitIsReplaced(t *testing.T) {
	schema := pgkit.NewSchema()
	at := pgkit.Shared(t).Address("postgres", "search_path="+schema)
	r := open(t, at, runner.Options{})
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	first := slices.Values([]jobs.Spec{count.With(0, jobs.Unique("has the commit prepared"))})
	if _, err := r.EnqueueSeq(t.Context(), first); err != nil {
		t.Fatal(err)
	}

	_, err = r.EnqueueSeq(t.Context(), func(yield func(jobs.Spec) bool) {
		yield(count.With(1, jobs.Unique("sent at once")))
		var ended int
		err := conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
			WHERE state = 'idle in transaction' AND strpos(query, $1) > 0`, schema+".tasks").Scan(&ended)
		testkit.NoError(t, err)
		testkit.Equal(t, "ended listeners", ended, 1)
	})
	testkit.ErrorIs(t, err, jobs.ErrUnknown)
	_, err = r.Enqueue(t.Context(), count.With(2))
	testkit.NoError(t, err)
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.Equal(t, "number of tasks", n, 2)
	testkit.NoError(t, err)
}
