package jobs

import (
	"slices"
	"strings"
	"time"
)

// Unique gives the task a unique key. While a task holds the key, Enqueue adds
// no other task with this key and returns the task that holds it, with Kept
// set. All jobs share the keys, so begin a key with the name of its job. A task
// holds its key until it finishes; UniqueFor and UniqueStates let it hold the
// key for longer. The key must not be empty.
func Unique(key string) Option { return unique(key, func(*Spec) {}) }

// UniqueReplace is like Unique, with one difference. If the task that holds the
// key has not started, it gets the settings of the new task, including the due
// time, and keeps its own id. So repeated calls of Enqueue delay the task each
// time (debouncing).
func UniqueReplace(key string) Option { return unique(key, func(s *Spec) { s.Replace = true }) }

// UniqueUntilStart is like Unique, but a running task doesn't count: it gives
// its key to the new task, unless UniqueFor still holds the key. So a change
// that comes while a task works on an older state isn't lost, and a function
// can enqueue itself under its own key. Add Lane(key) if the two must not
// overlap.
func UniqueUntilStart(key string) Option {
	return unique(key, func(s *Spec) { s.UntilStart = true })
}

func unique(key string, mode func(*Spec)) Option {
	return func(s *Spec) {
		s.UniqueKey, s.Replace, s.UntilStart = key, false, false
		mode(s)
		if key == "" {
			s.Err = invalid("unique_key", "it is empty")
		}
	}
}

// UniqueFor lets the task hold its unique key until it finishes, and at least
// for the time d after it was added. Until d has passed, Enqueue adds no other
// task with the key, even if the task has finished or retention has deleted it.
// So during this time you can repeat a call of Enqueue that failed: all these
// calls together add one task. The time d is at most ten years. UniqueFor needs
// Unique, UniqueReplace or UniqueArgs.
func UniqueFor(d time.Duration) Option { return func(s *Spec) { s.UniqueFor = d } }

// UniqueStates lets the task hold its unique key until it finishes, and also
// while it is in one of these finished states: Completed, Failed or Cancelled.
// The key becomes free when a worker deletes the task: by default after 7 days,
// or after 30 days if it failed (Keep and KeepFailed of runner.WorkOptions). To
// hold the key after the task is deleted, use UniqueFor. UniqueStates needs
// Unique, UniqueReplace or UniqueArgs.
func UniqueStates(states ...State) Option {
	return func(s *Spec) {
		var names []string
		for _, state := range states {
			names = append(names, string(state))
		}

		slices.Sort(names)
		if s.UniqueStates = strings.Join(slices.Compact(names), ","); s.UniqueStates == "" {
			s.Err = invalid("unique_states", "it names no state")
		}
	}
}

// UniqueArgs derives the unique key from the job and its arguments. Tasks of
// one job have the same key if their arguments are the same JSON. The order of
// the keys of an object does not matter. The input, the directory and the
// environment of a command do not matter either. If Unique or UniqueReplace is
// set, too, its key becomes part of the derived key.
func UniqueArgs() Option { return func(s *Spec) { s.UniqueArgs = true } }
