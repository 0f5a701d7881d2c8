// Package jobs defines tasks: what a task is, which states it goes through, which options it has, and the handlers that run it.
// It has plain values and pure functions: no clock, no I/O, no goroutines.
//
// A task is one row: "run this job, with these arguments, under these rules". A job is what it runs: the job "command" (an
// argv) or a registered Go function. An attempt is one execution of a task.
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
// To find out why a task fails or is retried, read Next in internal/lifecycle. Nothing else decides that.
package jobs
