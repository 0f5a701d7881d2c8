// Package taskspec has the options and the states of a task. It validates tasks,
// schedules and limits, and says how the database stores the options. Its rules
// for states are the transitions, what follows from the end of an attempt, the
// time of the next attempt, and which tasks are suspects because they may have
// killed their workers. They are pure functions, without a clock, I/O or
// randomness.
//
// A task passes through the program in these forms:
//
//	Args ──Func.With──▶ Spec ──NewTask──▶ Task ──Handler──▶ Outcome ──Next──▶ Change ──finish──▶ row
//
// The function Next alone decides whether a task fails or is retried.
package taskspec
