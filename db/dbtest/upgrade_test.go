package dbtest_test

import (
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/pgdriver"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestUpgradeOnPostgreSQLKeepsEverything adds a migration after the schema. The
// rows must stay. While a worker of the older program runs, nothing changes.
func TestUpgradeOnPostgreSQLKeepsEverything(t *testing.T) {
	ctx := t.Context()
	address := pgkit.Address(t)
	options := db.Options{Engine: pgdriver.Engine(), Dir: t.TempDir(), Create: true}
	older, err := db.Open(ctx, address, options)
	testkit.NoError(t, err)
	first, second := command.Command{Argv: []string{"true"}}, command.Command{Argv: []string{"cat"}}
	_, err = older.Insert(ctx, []jobs.Spec{jobs.Command(first), jobs.Command(second, jobs.DependsOn(1))}, time.Now())
	testkit.NoError(t, err)
	w, err := older.Register(ctx, db.WorkerInfo{ID: db.NewWorkerID(), Name: "busy", Lease: time.Minute, StartedAt: time.Now()},
		[]db.ClaimJob{{Job: command.Job, MaxAttempts: 1}})
	testkit.NoError(t, err)
	before, err := older.List(ctx, jobs.Filter{})
	testkit.NoError(t, err)

	version := older.Server().Tables
	schema.Added = map[string][]schema.Migration{schema.Postgres: {{Version: version + 1, Name: "added.sql",
		SQL: "CREATE TABLE extra (task_id BIGINT PRIMARY KEY); INSERT INTO extra (task_id) SELECT id FROM tasks;\n"}}}
	defer func() { schema.Added = nil }()
	_, err = db.Open(ctx, address, options)
	testkit.ErrorIs(t, err, jobs.ErrBusy, "older runner", "worker busy")
	testkit.NoError(t, w.End(ctx, time.Now()))
	testkit.NoError(t, older.Close())
	for range 2 { // the second Open does not run the migration again
		d, err := db.Open(ctx, address, options)
		testkit.NoError(t, err)
		testkit.Equal(t, "version", d.Server().Tables, version+1)
		after, err := d.List(ctx, jobs.Filter{})
		testkit.NoError(t, err)
		testkit.Equal(t, "tasks", after, before)
		testkit.NoError(t, d.Close())
	}
	schema.Added = nil
	_, err = db.Open(ctx, address, options)
	testkit.ErrorIs(t, err, jobs.ErrSchema, "newer runner")
}
