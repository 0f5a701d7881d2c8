package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/pgserver"
)

// pooled starts a server and a connection pooler in front of it, for one test. It returns the address of the pooler.
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

func TestAPoolerIsRefused(t *testing.T) {
	for _, mode := range []string{"session", "transaction", "statement"} {
		r, err := runner.Open(t.Context(), pooled(t, mode), runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
		if err == nil {
			r.Close()
		}
		if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) ||
			!strings.Contains(problem.What, "pooler") || !strings.Contains(problem.Hint, "the server itself") {
			t.Errorf("%s: got error %v, want jobs.ErrInvalid that names the pooler", mode, err)
		}
	}
}
