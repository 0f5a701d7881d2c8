package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func create(t *testing.T, path string) {
	t.Helper()
	d, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// change runs statements directly in SQLite, as any other program can do.
func change(t *testing.T, path string, statements ...string) {
	t.Helper()
	raw, err := sqlite.Connect(path, "rwc", "busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, err := raw.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestOpenRejectsOtherFilesAndKeepsThem(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		make func(path string)
	}{
		"a text file":       {"schema", func(path string) { os.WriteFile(path, []byte(strings.Repeat("hello\n", 1000)), 0o600) }},
		"a short text file": {"schema", func(path string) { os.WriteFile(path, []byte("x"), 0o600) }},
		"another program's": {"schema", func(path string) { change(t, path, "CREATE TABLE users (id)") }},
		"another program's, in WAL": {"schema", func(path string) {
			change(t, path, "PRAGMA journal_mode = WAL", "CREATE TABLE tasks (id)", "INSERT INTO tasks VALUES (1)")
		}},
		"another program's, without tables": {"schema",
			func(path string) { change(t, path, "PRAGMA application_id = 7", "PRAGMA user_version = 1") }},
		"a newer runner's": {"schema", func(path string) {
			create(t, path)
			change(t, path, fmt.Sprintf("PRAGMA user_version = %d", SchemaVersion()+1))
		}},
		"one without a table": {"schema", func(path string) {
			create(t, path)
			change(t, path, "DROP TABLE cursors")
		}},
		"one without a column": {"schema", func(path string) {
			create(t, path)
			change(t, path, "ALTER TABLE workers DROP COLUMN pid_namespace")
		}},
		"one with a view for a table": {"schema", func(path string) {
			create(t, path)
			change(t, path, "ALTER TABLE pauses RENAME TO old", "CREATE VIEW pauses AS SELECT * FROM old")
		}},
		"a damaged header": {"schema", func(path string) {
			create(t, path)
			text := testkit.ReadFile(t, path)
			copy(text, "SQLite format 4\x00")
			os.WriteFile(path, text, 0o600)
		}},
		"half a header": {"schema", func(path string) { os.WriteFile(path, []byte("SQLite format 3\x00"), 0o600) }},
	} {
		for _, options := range []Options{{}, {Create: true}, {ReadOnly: true}} {
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			c.make(path)
			before, names := testkit.ReadFile(t, path), listing(t, dir)
			d, err := Open(t.Context(), path, options)
			if err == nil {
				d.Close()
			}
			if kindOf(err) != c.kind {
				t.Errorf("%s, options %+v: got error %v, want kind %s", name, options, err, c.kind)
			}
			if !bytes.Equal(before, testkit.ReadFile(t, path)) {
				t.Errorf("%s, options %+v: got a changed file, want it unchanged", name, options)
			}
			if got := listing(t, dir); got != names {
				t.Errorf("%s, options %+v: got files %s, want %s", name, options, got, names)
			}
		}
	}
}

func TestOpenRejectsPathsWithoutFile(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{"": "invalid", dir: "schema", filepath.Join(dir, "none.db"): "no_database",
		link:                                    "no_database",
		filepath.Join(dir, "no", "dir", "x.db"): "no_database", "/dev/null": "schema", filepath.Join(dir, "a\x00b"): "permission"} {
		names := listing(t, dir)
		d, err := Open(t.Context(), path, Options{})
		if err == nil {
			d.Close()
		}
		if kindOf(err) != kind {
			t.Errorf("%q: got error %v, want kind %s", path, err, kind)
		}
		if got := listing(t, dir); got != names {
			t.Errorf("%q: got files %s, want %s", path, got, names)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "no", "x.db"), Options{Create: true}); kindOf(err) != "no_database" {
		t.Errorf("create in a missing directory: got error %v, want kind no_database", err)
	}
}

func TestOpenAcceptsEmptyFileOnlyWithCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, options := range []Options{{}, {ReadOnly: true}} {
		if _, err := Open(t.Context(), path, options); kindOf(err) != "schema" {
			t.Errorf("options %+v: got error %v, want kind schema", options, err)
		}
		if text := testkit.ReadFile(t, path); len(text) != 0 {
			t.Errorf("options %+v: got a file of %d bytes, want it empty", options, len(text))
		}
	}
	create(t, path)
}

func TestOpenFollowsSymlinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db")
	create(t, path)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Path() != path || strings.Contains(listing(t, dir), "link.db-wal") {
		t.Errorf("got path %s and files %s, want path %s and no link.db-wal", d.Path(), listing(t, dir), path)
	}
}

func TestFailedOpenClosesItsFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	change(t, path, "CREATE TABLE users (id)")
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := descriptors()
	for range 50 {
		if _, err := Open(t.Context(), path, Options{}); err == nil {
			t.Fatal("got no error for another program's file, want one")
		}
	}
	if after := descriptors(); after > before+10 {
		t.Errorf("got %d descriptors after 50 failed calls, want about %d as before", after, before)
	}
}

func TestOpenNamesFileInPlaceOfItsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path+".d", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{Create: true, BusyTimeout: time.Minute}); kindOf(err) != "permission" ||
		!strings.Contains(err.Error(), ".d") {
		t.Errorf(`got error %v, want kind permission and a text with ".d"`, err)
	}
}

func TestOpenReturnsWhenContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), Options{Create: true})
	if err == nil {
		d.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

func TestOpenCreatesFileWithAnyBusyTimeout(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), Options{Create: true, BusyTimeout: time.Nanosecond})
	if err != nil {
		t.Fatalf("Open of a new file that nobody else uses: got %v, want no error", err)
	}
	testkit.NoError(t, d.Close())
}

func TestReplacedDetectsAnotherFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	d, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	testkit.ErrorIs(t, d.Replaced(), nil)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	testkit.ErrorIs(t, d.Replaced(), jobs.ErrReplaced)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.ErrorIs(t, d.Replaced(), jobs.ErrReplaced)
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	testkit.ErrorIs(t, d.Replaced(), nil)
}

func TestClosedDatabaseIsNotReportedAsReplaced(t *testing.T) {
	d := openTest(t)
	if err := d.Close(); err != nil { // SQLite removes the write-ahead log
		t.Fatal(err)
	}
	if err := d.Replaced(); !errors.Is(err, jobs.ErrClosed) {
		t.Errorf("got error %v, want %v", err, jobs.ErrClosed)
	}
}

func TestRegisterCreatesMissingDirectory(t *testing.T) {
	d := openTest(t)
	if err := os.RemoveAll(d.Dir()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.Register(t.Context(), WorkerInfo{StartedAt: now()}, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(d.Dir()); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("got file info %+v and error %v, want mode 0700", info, err)
		}
	}
}

// TestWriterMakesNoTemporaryFiles checks that SQLite keeps temporary data in
// memory. A claim of a hundred tasks has more than 64 KiB of undo data, for
// which SQLite would otherwise need a temporary file. The claim would then fail
// on a system where SQLite cannot create one.
func TestWriterMakesNoTemporaryFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	for _, name := range []string{"a new database", "an existing database"} {
		d, err := Open(t.Context(), path, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		var store int
		if err := d.conn.GetContext(t.Context(), &store, "PRAGMA temp_store"); err != nil || store != 2 {
			t.Errorf("%s: got temp_store %d and error %v, want 2", name, store, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
