package db

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// manyTenants adds 20,000 tasks. Every second task has metadata with the key tenant.
const manyTenants = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
	INSERT INTO tasks (generation_id, state, queue, job, priority, run_at, max_losses, created_at, updated_at, options)
	SELECT 1, 'pending', 'default', 'f', 5, 0, 3, 0, 0, CASE WHEN i % 2 THEN '{"metadata":{"tenant":"a"}}' END FROM n`

// TestAKilledIndexMetadataIsCompletedByTheNextCall kills a process while it adds the existing tasks to a new index. Searches must not use
// the incomplete index, and must find the same tasks as before. The next call completes the index.
func TestAKilledIndexMetadataIsCompletedByTheNextCall(t *testing.T) {
	t.Parallel()
	image := filepath.Join(t.TempDir(), "image.db")
	create(t, image)
	change(t, image, manyTenants)
	text := testkit.ReadFile(t, image)
	tenants := func(d *DB) int {
		t.Helper()
		n, err := d.Count(t.Context(), jobs.Filter{Metadata: map[string]string{"tenant": "a"}})
		testkit.NoError(t, err)
		return n
	}
	interrupted := 0
	for rows := 0; rows <= 8000; rows += 2000 { // the test kills the process when the index has this many rows
		path := filepath.Join(t.TempDir(), "x.db")
		testkit.NoError(t, os.WriteFile(path, text, 0o600))
		raw, err := sqlite.Connect(path, "rw", "busy_timeout(5000)")
		testkit.NoError(t, err)
		number := func(query string) (n int) {
			t.Helper()
			testkit.NoError(t, raw.Get(&n, query))
			return n
		}
		c := start(t, childCommand{Do: "index", Path: path}, nil)
		for number(`SELECT count(*) FROM metadata_keys`) == 0 || number(`SELECT count(*) FROM metadata_index`) < rows {
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		if number(`SELECT filled FROM metadata_keys`) == 0 {
			interrupted++
		}
		d, err := Open(t.Context(), path, Options{})
		testkit.NoError(t, err)
		testkit.Equal(t, "tasks that a search finds after the kill", tenants(d), 10_000)
		testkit.NoError(t, d.IndexMetadata(t.Context(), []string{"tenant"}))
		testkit.Equal(t, "filled indexes after the next call", number(`SELECT sum(filled) FROM metadata_keys`), 1)
		testkit.Equal(t, "rows of the index", number(`SELECT count(*) FROM metadata_index`), 10_000)
		testkit.Equal(t, "tasks that a search finds after the next call", tenants(d), 10_000)
		testkit.NoError(t, d.Close())
		testkit.NoError(t, raw.Close())
	}
	if interrupted == 0 {
		t.Error("got no process that was killed before it had filled the index, want some")
	}
}
