package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/schema"
	"example.com/runner/test/testkit"
)

// TestUpgradeIsReported checks that a command upgrades a file with an older
// schema and tells the user so.
func TestUpgradeIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	runner := func(want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"runner", "--db", path}, args...), strings.NewReader(""), &out, &errs)
		testkit.Equal(t, "status", status, 0)
		testkit.Equal(t, "stderr", errs.String(), want)
	}
	runner("", "enqueue", "--", "true")
	version := db.SchemaVersion()
	schema.Added = map[string][]schema.Migration{schema.SQLite: {{Version: version + 1, SQL: "CREATE TABLE {extra} (\n  n INTEGER\n);\n"}}}
	defer func() { schema.Added = nil }()
	runner(fmt.Sprintf("upgraded %s from schema %d to %d; an older runner cannot open it any more\n", path, version, version+1), "list")
	runner("", "list")
}
