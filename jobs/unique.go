package jobs

import "time"

// UniqueOptions say how a task holds its unique key. The zero UniqueOptions are
// those of Unique.
type UniqueOptions struct {
	// For is the minimum time for which the task holds its key after it was
	// added, at most ten years. Until then, Enqueue adds no other task with the
	// key, even if the task has finished or retention has deleted it. So during
	// this time you can repeat a call of Enqueue that failed: all these calls
	// together add one task.
	For time.Duration

	// States are finished states in which the task holds its key, too. The
	// key becomes free when a worker deletes the task: by default after 7
	// days, or after 30 days if it failed (Keep and KeepFailed of
	// runner.WorkOptions), or earlier if MaxBytes of runner.Options needs the
	// room. To hold the key after the task is deleted, use For.
	States []State

	// Args derives the key from the job and its arguments. Two tasks have the
	// same key if their arguments are the same JSON: the order of the keys of
	// an object doesn't matter, nor do the input, the directory and the
	// environment of a command. A key beside Args becomes part of the derived
	// one, and may be empty.
	Args bool

	// Replace gives the new task's settings, including the due time, to the
	// task that holds the key, if that one has not started; it keeps its own
	// id. So repeated calls of Enqueue delay the task each time (debouncing).
	Replace bool

	// UntilStart lets a running task give its key to the new task, unless For
	// still holds the key. So a change that comes while a task works on an
	// older state isn't lost, and a function can enqueue itself under its own
	// key. Add Lane(key) if the two must not overlap.
	UntilStart bool

	// Global shares the key with the commands and with all jobs that say
	// Global, too: Task.UniqueKey is then only KEY. A record of runner list
	// --json has unique_global, so that a copy of the task keeps the key.
	Global bool
}

// Unique gives the task a unique key, which must not be empty. While a task of
// the same job holds the key, Enqueue adds no other task with it and returns
// the task that holds it, with Kept set. A task holds its key until it
// finishes. Task.UniqueKey is JOB#KEY; that of a command is only KEY.
func Unique(key string) Option { return UniqueWith(key, UniqueOptions{}) }

// UniqueWith is Unique with options, as in
// UniqueWith("order 7", UniqueOptions{For: 24 * time.Hour}).
func UniqueWith(key string, o UniqueOptions) Option {
	return func(s *Spec) {
		s.UniqueKey, s.Unique = key, o
		if key == "" && !o.Args {
			s.Err = invalid("unique_key", "it is empty")
		}
	}
}
