package postgres_test

import (
	"maps"
	"slices"
	"testing"

	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/test/testkit"
)

func TestBothDialectsHaveSameFragments(t *testing.T) {
	got, want := slices.Sorted(maps.Keys(postgres.Dialect("ours").Fragments)), slices.Sorted(maps.Keys(sqlite.Dialect("").Fragments))
	testkit.Equal(t, "fragments of PostgreSQL and SQLite", got, want)
}
