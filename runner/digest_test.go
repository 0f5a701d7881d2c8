package runner_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
)

// TestDigestCollectsEventsOfItsKey runs the recipe of docs/embedding.md: events
// are rows of the program, and one task for each account sends those that have
// come in ten minutes. Its last event comes while a digest is being sent.
func TestDigestCollectsEventsOfItsKey(t *testing.T) {
	sendDigest := jobs.Define[string]("digest.send")
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		handle := runnertest.OpenDB(t, r)
		_, err := handle.ExecContext(t.Context(), `CREATE TABLE events (id INTEGER PRIMARY KEY, account TEXT, text TEXT)`)
		testkit.NoError(t, err)
		add := func(ctx context.Context, account, text string) {
			t.Helper()
			tx := begin(t, handle)
			defer tx.Rollback()
			_, err := tx.ExecContext(ctx, `INSERT INTO events (account, text) VALUES (?, ?)`, account, text)
			testkit.NoError(t, err)
			_, err = r.EnqueueTx(ctx, tx, sendDigest.With(account, jobs.In(10*time.Minute), jobs.Lane("digest "+account),
				jobs.UniqueWith(account, jobs.UniqueOptions{UntilStart: true})))
			testkit.NoError(t, err)
			testkit.NoError(t, tx.Commit())
		}
		var sent []string
		r.Register(sendDigest.Handler(func(ctx context.Context, account string) error {
			var texts sql.NullString
			var last int64
			err := handle.QueryRowContext(ctx, `SELECT coalesce(max(id), 0), group_concat(text, ' ' ORDER BY id)
				FROM events WHERE account = ?`, account).Scan(&last, &texts)
			testkit.NoError(t, err)
			sent = append(sent, account+": "+texts.String)
			if len(sent) == 1 {
				add(ctx, account, "late")
			}
			tx := begin(t, handle)
			defer tx.Rollback()
			_, err = tx.ExecContext(ctx, `DELETE FROM events WHERE account = ? AND id <= ?`, account, last)
			testkit.NoError(t, err)
			testkit.NoError(t, runner.FinishTx(ctx, tx, nil))
			return tx.Commit()
		}))

		for _, event := range []string{"ann a", "bob b", "ann c"} {
			account, text, _ := strings.Cut(event, " ")
			add(t.Context(), account, text)
			runnertest.Advance(t, time.Minute)
		}
		runnertest.RunDue(t, r)
		testkit.Len(t, "digests before ten minutes", sent, 0)
		runnertest.Advance(t, 10*time.Minute)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "digests", sent, []string{"ann: a c", "bob: b"})
		runnertest.Advance(t, 10*time.Minute)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "digests", sent[2:], []string{"ann: late"})
	})
}
