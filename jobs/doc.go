// Package jobs defines tasks, their states and options, and the handlers that run them. It has plain values and pure functions, without a
// clock, I/O or goroutines.
//
// A task is one row in the database: "run this job, with these arguments, under these rules". A job is either a registered Go function or
// the job "command", which runs a program with arguments. An attempt is one execution of a task.
//
//	enqueue ─▶ scheduled ──due──▶ pending ──claim──▶ running ──finish──▶ completed
//	              ▲                 ▲  ▲               │ │ │               failed
//	              │                 │  └─lost,shutdown─┘ │ │               cancelled
//	              └───────snooze────┼────────────────────┘ │
//	                                └─due─ retrying ◀──────┘
//
// A blocked task waits for other tasks. Cancelling ends a waiting task at once, and a running task through its worker. Retrying
// makes a finished task pending again.
//
// docs/glossary.md explains the words of runner, such as lane, lease and suspect.
//
// To find out why a task fails or is retried, read Next in internal/lifecycle. No other code decides that.
package jobs
