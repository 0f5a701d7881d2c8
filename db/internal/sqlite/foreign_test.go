package sqlite

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
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

func TestOwnTablesMatchTheSchema(t *testing.T) {
	memory, err := sqlx.Open(driverName, filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for _, m := range schema.MigrationsFrom(0) {
		if _, err := memory.Exec((&sqltext.Dialect{}).Names(m.Text())); err != nil {
			t.Fatal(err)
		}
	}
	var own []table
	if err := memory.Select(&own, selectTables); err != nil {
		t.Fatal(err)
	}
	var length int
	if err := memory.Get(&length, selectTablesLength); err != nil {
		t.Fatal(err)
	}
	if length != ownTablesLength {
		t.Errorf("got ownTablesLength %d, want the length of the schema's tables, %d", ownTablesLength, length)
	}
	if !slices.Equal(ownTables, own) {
		t.Errorf("got ownTables\n%q\nwant the tables of the schema:\n%q", ownTables, own)
	}
}
