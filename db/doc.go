// Package db stores tasks in an SQLite file or on a PostgreSQL server. It has
// all SQL of runner: claim, finish, insert, lanes, limits, dependencies,
// schedules, queries and group commit. It doesn't decide which state follows
// from an outcome; package internal/taskspec does. Other programs can import
// package db, but it promises them no compatibility. They should use package
// runner instead.
//
// Package db doesn't ask whether a database is a file or on a server. The
// differences in behaviour are behind the interface of package
// db/internal/engine. The differences in SQL are fragments of templates
// (package db/internal/sqltext).
//
// Package db guarantees to package runner:
//
//   - Only one caller of Claim gets a task, by compare-and-swap on (id,
//     generation_id).
//   - Every later write of an attempt names its generation. Package db counts
//     the changed rows and reports a write that changed none.
//   - When an enqueue or a finish returns without error, it survives a power
//     failure.
//   - A write that returns an error may have been committed all the same. Every
//     write can be repeated safely.
//   - No lock is held while a task runs.
package db
