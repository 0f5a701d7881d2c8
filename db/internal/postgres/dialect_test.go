package postgres_test

import (
	"maps"
	"slices"
	"testing"

	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqlite"
)

func TestBothDialectsHaveTheSameFragments(t *testing.T) {
	got, want := slices.Sorted(maps.Keys(postgres.Dialect("ours").Fragments)), slices.Sorted(maps.Keys(sqlite.Dialect("").Fragments))
	if !slices.Equal(got, want) {
		t.Errorf("PostgreSQL has %v, SQLite has %v", got, want)
	}
}
