package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/pgserver"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// pooled puts a connection pooler before a server, for one test.
func pooled(t *testing.T, mode string) string {
	t.Helper()
	address, stop, err := start(t).Pool(t.Context(), mode, "postgres")
	if errors.Is(err, pgserver.ErrNoPooler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

func TestAPoolInSessionModeServes(t *testing.T) {
	r := open(t, pooled(t, "session"), runner.Options{})
	ran := make(chan struct{})
	greet := jobs.Define[string]("greet")
	r.Register(greet.Handler(func(context.Context, string) error { close(ran); return nil }))
	if err := admin.ListenCheck(t.Context(), r, patience); err != nil {
		t.Error("no message arrives:", err)
	}
	stop := work(t, r)
	defer stop()
	task, err := r.Enqueue(t.Context(), greet.With("you"))
	if err != nil {
		t.Fatal(err)
	}
	<-ran
	if done, err := r.Await(t.Context(), task.ID); err != nil || done.State != jobs.Completed {
		t.Fatalf("got %+v, %v; want no error, done.State = Completed", done.State, err)
	}
}

func TestAPoolInTransactionModeIsRefused(t *testing.T) {
	for _, mode := range []string{"transaction", "statement"} {
		r, err := runner.Open(t.Context(), pooled(t, mode), runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
		if err == nil {
			r.Close()
		}
		if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) ||
			!strings.Contains(problem.Hint, "session mode") {
			t.Errorf(`got %+v, %v; want ok, Is(err, ErrInvalid), Contains(problem.Hint, "session mode")`, mode, err)
		}
	}
}
