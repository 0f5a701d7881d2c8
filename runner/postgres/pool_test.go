package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// pooled starts a server and a connection pooler in front of it, for one test.
// It returns the address of the pooler.
func pooled(t *testing.T, mode string) string {
	t.Helper()
	address, stop, err := pgkit.Start(t).Pool(t.Context(), mode, "postgres")
	if errors.Is(err, pgserver.ErrNoPooler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(stop)
	return address
}

func TestPoolerInSessionModeWorks(t *testing.T) {
	r := open(t, pooled(t, "session"), runner.Options{})
	ran := make(chan struct{})
	greet := jobs.Define[string]("greet")
	r.Register(greet.Handler(func(context.Context, string) error { close(ran); return nil }))
	stop := work(t, r)
	defer stop()
	task, err := r.Enqueue(t.Context(), greet.With("you"))
	if err != nil {
		t.Fatal(err)
	}

	<-ran
	done, err := r.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Completed)
}

// TestPoolerThatRejectsParameterIsNamed opens an address with a parameter that
// PgBouncer doesn't accept in the startup message.
func TestPoolerThatRejectsParameterIsNamed(t *testing.T) {
	address := pooled(t, "session") + "&geqo=off"
	r, err := runner.Open(t.Context(), address, runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
	if err == nil {
		r.Close()
	}
	if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) ||
		!strings.Contains(problem.What, "pooler") || !strings.Contains(err.Error(), "geqo") {
		t.Errorf("got error %v, want jobs.ErrInvalid that names the pooler and the parameter", err)
	}
}

func TestPoolerInTransactionModeIsRejected(t *testing.T) {
	for _, mode := range []string{"transaction", "statement"} {
		r, err := runner.Open(t.Context(), pooled(t, mode), runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
		if err == nil {
			r.Close()
		}
		if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) ||
			!strings.Contains(problem.Hint, "session mode") {
			t.Errorf("%s: got error %v, want jobs.ErrInvalid with a hint at the session mode", mode, err)
		}
	}
}
