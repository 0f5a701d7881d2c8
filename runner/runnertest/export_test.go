package runnertest

import (
	"testing"

	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// FailCommit makes the n-th commit from now return ErrInjected. If before is
// true, that commit fails before it takes effect, and otherwise after it.
// failed reports whether that commit has failed.
func FailCommit(t testing.TB, r *runner.Runner, n int, before bool) (failed func() bool) {
	t.Helper()
	inject(t, r, n, before)
	return func() bool {
		faults.mu.Lock()
		defer faults.mu.Unlock()
		_, waits := faults.next[admin.Path(r)]
		return !waits
	}
}
