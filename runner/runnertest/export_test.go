package runnertest

import (
	"testing"

	"example.com/runner/runner"
)

// FailCommit makes the n-th commit from now return ErrInjected: before it takes effect, or afterwards. The function that FailCommit returns
// reports whether that has happened.
func FailCommit(t testing.TB, r *runner.Runner, n int, before bool) (failed func() bool) {
	t.Helper()
	inject(t, r, n, before)
	return func() bool {
		faults.mu.Lock()
		defer faults.mu.Unlock()
		_, waits := faults.next[r.Path()]
		return !waits
	}
}
