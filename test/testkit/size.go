package testkit

import (
	"os"
	"testing"
)

// Full says whether the tests run at full size, which RUNNER_TEST=full asks
// for. CI's scripts set it. Without it, go test ./... tries fewer cases and
// starts neither PostgreSQL nor a browser, so it takes a minute or two.
func Full() bool { return os.Getenv("RUNNER_TEST") == "full" }

// Size returns small in the plain run and large in the full one.
func Size[V any](small, large V) V {
	if Full() {
		return large
	}
	return small
}

// NeedFull skips a test that takes too long for the plain run.
func NeedFull(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("only with RUNNER_TEST=full")
	}
}
