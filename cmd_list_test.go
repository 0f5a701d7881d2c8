package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/testkit"
)

// TestAnUpgradeIsReported checks that a command upgrades a file with an older schema and tells the user so.
func TestAnUpgradeIsReported(t *testing.T) {
	dump, err := os.ReadFile("db/testdata/schema-11.sql")
	testkit.NoError(t, err)
	path := filepath.Join(t.TempDir(), "old.db")
	raw, err := sql.Open("sqlite", path)
	testkit.NoError(t, err)
	_, err = raw.ExecContext(t.Context(), "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; "+
		string(dump))
	testkit.NoError(t, err)
	testkit.NoError(t, raw.Close())
	testkit.NoError(t, os.Chmod(path, 0o600))
	upgraded := fmt.Sprintf("upgraded %s from schema 11 to %d; an older runner cannot open it any more\n", path, admin.SchemaVersion())
	for _, want := range []string{upgraded, ""} {
		var out, errs bytes.Buffer
		status := run(t.Context(), []string{"runner", "--db", path, "list"}, strings.NewReader(""), &out, &errs)
		testkit.Equal(t, "status", status, 0)
		testkit.Equal(t, "stderr", errs.String(), want)
	}
}
