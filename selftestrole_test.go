package main

import (
	"context"
	"testing"

	"example.com/runner/internal/cli"
)

// Who is told to end before the database is open has nothing to report: the selftest would take that for a fault of the runner's.
func TestAPartEndsBeforeItHasBegun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, role := range []string{"enqueue", "browse"} {
		if err := selftestRole(ctx, &cli.App{}, role, t.TempDir(), []string{"name", "1", "1"}); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}
