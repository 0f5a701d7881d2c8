// Package jobs holds the words and rules of runner: what a task is, which states it passes, and what follows from an
// attempt's outcome. It is plain values and pure functions: no clock, no I/O, no goroutine, and nothing but the standard
// library below it.
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
// blocked is the state of tasks that wait for others. cancel ends a waiting task at once and a running one through its worker;
// retry makes a finished task pending again.
//
// The way of a task through the program has five nouns, one per hop:
//
//	Args ──Func.With──▶ Spec ──insert──▶ Task ──Handler──▶ Outcome ──Next──▶ Change ──finish──▶ row
//
// Whoever asks "why did this task fail?" reads Next and nothing else.
package jobs
