// Package db stores tasks in an SQLite file or on a PostgreSQL server. It has the only SQL of runner: claim, finish, insert, lanes, limits,
// dependencies, schedules, queries and group commit. It decides nothing: package jobs says what follows from an outcome. Other
// programs can import it, but it promises nothing to them: they use package runner.
//
// Package db does not ask whether a database is a file or on a server. What the two do differently is behind the interface of package
// db/internal/engine, and the words of SQL that differ are fragments of templates (package db/internal/sqltext).
//
// It promises to package runner:
//
//   - Only one caller of Claim gets a task, by compare-and-swap on (id, generation_id).
//   - Every later write of an attempt names its generation. The changed rows are counted, and a refused write is reported.
//   - When an enqueue or a finish returns without error, it survives a power failure.
//   - A write that returns an error may have happened all the same. Every write can be repeated safely.
//   - No lock is held while a task runs.
package db
