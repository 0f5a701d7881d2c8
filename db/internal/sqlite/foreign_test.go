package sqlite

import (
	"testing"

	"example.com/runner/db/internal/sqltext"
)

func TestOwnSumMatchesTheSchema(t *testing.T) {
	own, err := ownSchema(t.Context(), &sqltext.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sum(own); got != ownSum {
		t.Errorf("got ownSum %q, want the sum of the schema, %q", ownSum, got)
	}
}
