package db

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/testkit"
)

// statements splits a migration into its statements. It relies on two rules: no string has a semicolon at the end of a line, and the
// statements in a trigger are indented.
func statements(text string) []string {
	var list []string
	whole := ""
	for part := range strings.SplitAfterSeq(text, ";\n") {
		if whole += part; strings.Contains(whole, "BEGIN\n") && !strings.HasSuffix(whole, "\nEND;\n") {
			continue
		}
		if strings.TrimSpace(whole) != "" {
			list = append(list, whole)
		}
		whole = ""
	}
	return list
}

func TestAnInterruptedMigrationLeavesTheOldSchema(t *testing.T) {
	all := statements(schemaText(t))
	all = append(all, fmt.Sprintf("PRAGMA application_id = %d", sqlite.ApplicationID),
		fmt.Sprintf("PRAGMA user_version = %d", SchemaVersion()))
	if len(all) < 15 {
		t.Fatalf("got %d statements in the schema, want at least 15", len(all))
	}
	for done := range len(all) + 1 {
		path := filepath.Join(t.TempDir(), "x.db")
		raw, err := sqlite.Connect(path, "rwc")
		if err != nil {
			t.Fatal(err)
		}
		raw.MustExec("PRAGMA auto_vacuum = INCREMENTAL")
		raw.MustExec("PRAGMA journal_mode = WAL")
		conn, err := raw.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append([]string{"BEGIN IMMEDIATE"}, all[:done]...) {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("got error %v, want none, from the statement\n%s", err, text)
			}
		}
		conn.Close() // close the connection without a COMMIT, like a process that dies
		raw.Close()

		d, err := Open(t.Context(), path, Options{Create: true})
		if err != nil {
			t.Fatalf("open after %d statements: got error %v, want none", done, err)
		}
		if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
			t.Errorf("insert after %d statements: got error %v, want none", done, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPragmasOfANewDatabase(t *testing.T) {
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

func TestSynchronousPragmaMatchesTheLevelOfTheWrite(t *testing.T) {
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
