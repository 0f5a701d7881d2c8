// Package taskspec has the options and the states of a task: what is valid, how
// the database stores it, what follows from the end of an attempt, and which
// tasks are suspects because they may have killed their workers. Its functions
// are pure, without a clock, I/O or randomness.
//
// A task passes through the program in these forms:
//
//	Args ──Func.With──▶ Spec ──NewTask──▶ Task ──Handler──▶ Outcome ──Next──▶ Change ──finish──▶ row
//
// The function Next alone decides whether a task fails or is retried.
package taskspec
