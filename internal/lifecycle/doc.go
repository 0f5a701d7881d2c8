// Package lifecycle has the rules for the states of a task: which transitions there are, what follows from the end of an attempt, when the
// next attempt starts, and which task may kill its worker. Its functions are pure: no clock, no I/O, no randomness.
//
// A task passes through the program in five forms:
//
//	Args ──Func.With──▶ Spec ──NewTask──▶ Task ──Handler──▶ Outcome ──Next──▶ Change ──finish──▶ row
//
// Nothing but Next decides whether a task fails or is retried.
package lifecycle
