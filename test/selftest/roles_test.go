package main

import (
	"context"
	"io"
	"testing"
)

// TestRoleEndsBeforeDatabaseIsOpen checks that a role, which is a process that
// the selftest starts, returns no error if SIGTERM comes before the database is
// open. The selftest would report such an error as a fault of runner.
func TestRoleEndsBeforeDatabaseIsOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, role := range []string{"enqueue", "browse"} {
		if err := play(ctx, io.Discard, role, t.TempDir(), []string{"name", "1", "1"}); err != nil {
			t.Errorf("%s: got error %v, want none", role, err)
		}
	}
}
