package db

import (
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// manyTenants adds 5,000 tasks. Every second task has metadata with the key tenant.
const manyTenants = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
	INSERT INTO tasks (generation_id, state, queue, job, priority, run_at, max_losses, created_at, updated_at, options)
	SELECT 1, 'pending', 'default', 'f', 5, 0, 3, 0, 0, CASE WHEN i % 2 THEN '{"metadata":{"tenant":"a"}}' END FROM n`

// TestAnInterruptedIndexMetadataIsCompletedByTheNextCall interrupts a call
// between two of its transactions, as a kill would. Searches must not use the
// incomplete index, and must find the same tasks as before.
func TestAnInterruptedIndexMetadataIsCompletedByTheNextCall(t *testing.T) {
	d := openTest(t)
	change(t, d.Path(), manyTenants, `CREATE TRIGGER stop BEFORE INSERT ON metadata_index WHEN NEW.task_id > 2500
		BEGIN SELECT RAISE(ABORT, 'interrupted'); END`)
	number := func(query string) (n int) {
		t.Helper()
		testkit.NoError(t, d.read.Get(&n, query))
		return n
	}
	tenants := func() int {
		t.Helper()
		n, err := d.Count(t.Context(), jobs.Filter{Metadata: map[string]string{"tenant": "a"}})
		testkit.NoError(t, err)
		return n
	}

	testkit.ErrorContains(t, d.IndexMetadata(t.Context(), []string{"tenant"}), "interrupted")
	testkit.Equal(t, "filled indexes", number(`SELECT sum(filled) FROM metadata_keys`), 0)
	testkit.Equal(t, "rows of the interrupted index", number(`SELECT count(*) FROM metadata_index`), 1000)
	testkit.Equal(t, "tasks that a search finds", tenants(), 2500)

	change(t, d.Path(), "DROP TRIGGER stop")
	testkit.NoError(t, d.IndexMetadata(t.Context(), []string{"tenant"}))
	testkit.Equal(t, "filled indexes after the next call", number(`SELECT sum(filled) FROM metadata_keys`), 1)
	testkit.Equal(t, "rows of the index", number(`SELECT count(*) FROM metadata_index`), 2500)
	testkit.Equal(t, "tasks that a search finds after the next call", tenants(), 2500)
}
