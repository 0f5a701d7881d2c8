// Package db is the file: the only SQL of runner, its transactions, its schema. It decides nothing; what follows from an
// outcome is asked of package jobs. It is importable but promises nothing to other programs: use package runner.
//
// What it promises to runner:
//
//   - A task is handed to one caller of Claim only, by compare-and-swap on (id, generation_id).
//   - Every later write of an attempt names its generation; the rows it changed are counted, and a refused write is told.
//   - When an enqueue or a finish returns without error it is on the disk (synchronous=FULL).
//   - A write that returns an error may have happened all the same; every write can be repeated safely.
//   - No lock is held while a task runs.
package db
