package test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// contextTests lists the exported functions and methods that take a context, in
// the public packages except jobs. Each row names the test that calls the
// function with a context that has ended. Functions of package runner that
// return no error have no row. The methods of Runner are in a table of their
// own: see TestTableOfContextsIsComplete in package runner.
var contextTests = []struct{ path, call, file, test string }{
	{"runner", "New(", "contexts_test.go", "TestNoCallOutlastsItsContext"},
	{"runner", "Open(", "contexts_test.go", "TestNoCallOutlastsItsContext"},
	{"runner", "OpenDB(", "contexts_test.go", "TestNoCallOutlastsItsContext"},
	{"runner", "FinishTx(", "contexts_test.go", "TestNoCallOfHandlerOutlastsItsContext"},
	{"runner", "Sleep(", "contexts_test.go", "TestNoCallOfHandlerOutlastsItsContext"},
	{"runner", "Step[T any](", "contexts_test.go", "TestNoCallOfHandlerOutlastsItsContext"},
	{"runner", "StepTx[T any](", "contexts_test.go", "TestNoCallOfHandlerOutlastsItsContext"},
	{"runner", "Upstream(", "contexts_test.go", "TestNoCallOfHandlerOutlastsItsContext"},
	{"runner/postgres", "Open(", "pgxpool_test.go", "TestOpenReturnsCauseOfItsContext"},
	{"runner/postgres", "Tx(", "pgxtx_test.go", "TestContextOfTransactionOfPgx"},
	{"runner/runnertest", "Crash(", "crash_test.go", "TestFaultsIgnoreEndOfContext"},
	{"runner/runnertest", "Lose(", "crash_test.go", "TestFaultsIgnoreEndOfContext"},
	{"web", "(*Server) Serve(", "serve_test.go", "TestServeReturnsWhenItsContextHasEnded"},
}

func TestEveryCallWithContextIsTested(t *testing.T) {
	for _, path := range []string{"runner", "runner/postgres", "runner/runnertest", "web"} {
		_, lines := exported(t, path)
		for _, line := range lines {
			call, takes := strings.CutPrefix(line, "func ")
			call, _, found := strings.Cut(call, "ctx context.Context")
			if !takes || !found || path == "runner" && (strings.HasPrefix(call, "(*Runner)") || !strings.Contains(line, "error")) {
				continue
			}
			i := slices.IndexFunc(contextTests, func(row struct{ path, call, file, test string }) bool {
				return row.path == path && row.call == call
			})
			if i < 0 {
				t.Errorf("package %s: got no row for %s...) in contextTests, want one", path, call)
			}
		}
	}
	for _, row := range contextTests {
		text, err := os.ReadFile(row.path + "/" + row.file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\nfunc "+row.test+"(") {
			t.Errorf("%s/%s: got no test %s, want one", row.path, row.file, row.test)
		}
	}
}
