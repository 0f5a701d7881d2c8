package jobs

import (
	"slices"
)

// State is the state of a task. The database, JSON and the command line use the same words.
type State string

// The states of a task. The first five are unfinished: the task will start, or is running.
const (
	Scheduled State = "scheduled" // waits for its start time
	Pending   State = "pending"   // may start now
	Blocked   State = "blocked"   // waits for another task, or for its lane
	Running   State = "running"   // an attempt is in progress
	Retrying  State = "retrying"  // an attempt failed; the next one is due later
	Completed State = "completed" // finished: exit 0, or no error
	Failed    State = "failed"    // finished: failed, and no retry follows
	Cancelled State = "cancelled" // finished: stopped on request, expired, or its dependency failed
)

var states = []State{Scheduled, Pending, Blocked, Running, Retrying, Completed, Failed, Cancelled}

// States returns all states: the unfinished ones first, in the order of a task's life.
func States() []State { return slices.Clone(states) }

// Unfinished returns the states in which a task will start or is running.
func Unfinished() []State { return slices.Clone(states[:5]) }

// Finished returns the states in which a task has ended.
func Finished() []State { return slices.Clone(states[5:]) }

// Finished reports whether a task in this state has ended.
func (s State) Finished() bool { return s == Completed || s == Failed || s == Cancelled }

// move is a transition from one state to another, and the action that makes it.
type move struct {
	From, To State
	By       string
}

// moves lists all transitions. Tests compare Next, the statements of package db and the schema with it.
var moves = []move{
	{Scheduled, Pending, "due"}, {Scheduled, Blocked, "due"}, {Scheduled, Cancelled, "cancel"},
	{Pending, Running, "claim"}, {Pending, Blocked, "block"}, {Pending, Cancelled, "cancel"}, {Pending, Scheduled, "replace"},
	{Blocked, Pending, "free"}, {Blocked, Scheduled, "free"}, {Blocked, Cancelled, "cancel"},
	{Running, Completed, "finish"}, {Running, Failed, "finish"}, {Running, Retrying, "finish"},
	{Running, Cancelled, "finish"}, {Running, Pending, "release"}, {Running, Scheduled, "snooze"},
	{Retrying, Pending, "due"}, {Retrying, Cancelled, "cancel"},
	{Completed, Pending, "retry"}, {Completed, Scheduled, "retry"}, {Completed, Blocked, "retry"},
	{Failed, Pending, "retry"}, {Failed, Scheduled, "retry"}, {Failed, Blocked, "retry"},
	{Cancelled, Pending, "retry"}, {Cancelled, Scheduled, "retry"}, {Cancelled, Blocked, "retry"},
}

// CanMove reports whether a task may go from one state to another in one step.
func CanMove(from, to State) bool {
	return slices.ContainsFunc(moves, func(m move) bool { return m.From == from && m.To == to })
}
