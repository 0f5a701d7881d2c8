package db

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// The constant "many" is a statement that adds n copies of the tasks to a database of schema 11. In columns whose values must be unique,
// the copies have other values or none.
const many = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %[1]d - 1)
	INSERT INTO tasks SELECT 100 + i, generation_id, job, args, label, queue, state,
	reason, priority, NULL, run_at, expires_at, attempt, max_attempts, losses,
		max_losses, timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on,
		output_limit, path, cwd, env, env_file, input_bytes, worker_id,
		lease_expires_at, cancel_requested_at, cancel_now, cancel_text, created_at,
		created_by, updated_at, started_at, finished_at, duration, result,
		error, exit_code, signal, output_bytes, output_truncated, progress, schedule, tick + i, after, after_any, NULL, waits, input
	FROM n JOIN tasks ON id = 1 + i %% 29 AND generation_id > 0;
	INSERT INTO attempt_rows SELECT tasks.id, 1, 1, 'failed', 'exit', 1, 'unknown' || tasks.id %% 100,
	started_at, started_at + 5, 4, 1, NULL, 'exit status 1', 0, 0
	FROM tasks WHERE tasks.id >= 100 AND started_at IS NOT NULL`

// writeMany creates the file of the old schema and adds at most n copies of the tasks in it. It returns the path and the total number of
// tasks.
func (o old) writeMany(t *testing.T, n int) (path string, tasks int) {
	t.Helper()
	path = o.write(t)
	raw, err := sqlite.Connect(path, "rw", "synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.MustExec(fmt.Sprintf(many, n))
	if err := raw.Get(&tasks, "SELECT count(*) FROM tasks"); err != nil || tasks < n*20/29 {
		t.Fatalf("got %d tasks and error %v, want at least %d tasks", tasks, err, n*20/29)
	}
	return path, tasks
}

// TestAKilledConversionLosesNothing checks that a killed conversion leaves a complete database of the old schema or of the new one.
func TestAKilledConversionLosesNothing(t *testing.T) {
	o := olds(t)[0]
	image, tasks := o.writeMany(t, 10_000)
	text := testkit.ReadFile(t, image)
	var took time.Duration
	left := map[int]int{} // number of databases by the version of their schema after the kill
	for i := range 10 {
		path := filepath.Join(t.TempDir(), "x.db")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the first round has no kill; it measures how long a conversion takes
			began := time.Now()
			if r := send(t, childCommand{Do: "open", Path: path}, nil); r.Kind != "" {
				t.Fatalf("the first conversion: got report %+v, want no error", r)
			}
			took = time.Since(began)
		} else {
			c := start(t, childCommand{Do: "open", Path: path}, nil)
			time.Sleep(took * time.Duration(i) / 9)
			_ = c.Process.Kill()
			_ = c.Wait()
		}
		raw, err := sqlite.Connect(path, "rw")
		if err != nil {
			t.Fatal(err)
		}
		var version, n int
		query := map[int]string{o.version: "SELECT count(worker_id) * 0 + count(*) FROM tasks WHERE NOT EXISTS (SELECT 1 FROM " +
			"attempt_rows WHERE task_id = -1)",
			SchemaVersion(): "SELECT count(worker) * 0 + count(*) FROM tasks WHERE NOT EXISTS (SELECT 1 FROM attempts WHERE task_id = -1)"}
		if err := raw.Get(&version, "PRAGMA user_version"); err != nil {
			t.Fatal(err)
		}
		if err := raw.Get(&n, query[version]); err != nil || n != tasks {
			t.Errorf("killed after %d/9 of the time: got %d tasks in schema %d and error %v, want %d tasks", i, n, version, err, tasks)
		}
		left[version]++
		raw.Close()
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := d.Count(t.Context(), jobs.Filter{}); err != nil || n != tasks {
			t.Errorf("after the upgrade: got %d tasks and error %v, want %d", n, err, tasks)
		}
		if found, err := d.Integrity(t.Context(), true); err != nil || len(found) > 0 {
			t.Errorf("integrity_check: got problems %v and error %v, want neither", found, err)
		}
		o.kept(t, d)
		_ = d.Close()
	}
	t.Log(took, left)
	if left[o.version] == 0 {
		t.Error("got no conversion that was killed before its end, want at least one")
	}
}

// TestAConversionOfManyTasks converts 103,000 tasks with 103,000 attempts, 27 MB in total. This takes 0.9 to 1.9 s on two cores while other
// programs cause a load of 4 to 7.
func TestAConversionOfManyTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand tasks")
	}
	o := olds(t)[0]
	path, tasks := o.writeMany(t, 115_000)
	size := len(testkit.ReadFile(t, path))
	began := time.Now()
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	took := time.Since(began)
	var after int64
	if err := d.read.Get(&after, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "+
		"pragma_page_size"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tasks in %v; %d bytes before, %d after", tasks, took, size, after)
	if n, err := d.Count(t.Context(), jobs.Filter{}); err != nil || n != tasks || n < 100_000 {
		t.Errorf("got %d tasks and error %v, want %d and at least 100,000", n, err, tasks)
	}
	if found, err := d.Integrity(t.Context(), true); err != nil || len(found) > 0 {
		t.Errorf("integrity_check: got problems %v and error %v, want neither", found, err)
	}
	o.kept(t, d)
}
