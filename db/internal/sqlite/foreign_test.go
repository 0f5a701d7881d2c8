package sqlite

import (
	"testing"

	"example.com/runner/db/internal/sqltext"
)

func TestTheSumIsThatOfTheSchema(t *testing.T) {
	own, err := ownSchema(t.Context(), &sqltext.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sum(own); got != ownSum {
		t.Errorf("ownSum is %q, want %q", ownSum, got)
	}
}
