package db

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/test/testkit"
)

func TestPragmasOfNewDatabase(t *testing.T) {
	d := openTest(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "auto_vacuum": "2",
		"application_id": fmt.Sprint(sqlite.ApplicationID), "foreign_keys": "1",
		"user_version": fmt.Sprint(SchemaVersion()), "query_only": "1", "trusted_schema": "0", "busy_timeout": "5000"} {
		var got string
		if err := d.read.Get(&got, "PRAGMA "+pragma); err != nil || got != want {
			t.Errorf("PRAGMA %s: got %q and error %v, want %q", pragma, got, err, want)
		}
	}
	if _, err := d.read.Exec("DELETE FROM tasks"); err == nil {
		t.Error("a DELETE on a connection for reading: got no error, want one")
	}
	if _, err := d.read.Exec(`SELECT "no such column"`); err == nil {
		t.Error("a text in double quotes: got no error, want one")
	}
}

func TestSynchronousPragmaMatchesLevelOfWrite(t *testing.T) {
	level := func(d *DB, to level) (got int) {
		t.Helper()
		if err := d.update(t.Context(), to, func(tx *tx) error { return tx.scan(query("PRAGMA synchronous"), nil, &got) }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	durable, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer durable.Close()
	alwaysNormal := openTest(t)
	for range 3 { // Set each level of durability three times, because a prepared PRAGMA would take effect only the first time.
		testkit.Equal(t, "synchronous of a full write", level(durable, full), 2)
		testkit.Equal(t, "synchronous of a normal write", level(durable, normal), 1)
		testkit.Equal(t, "synchronous of a full write with Options.Normal", level(alwaysNormal, full), 1)
	}
}

func now() time.Time { return time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC) }
