// Package transitions lists the changes of state that a task may make. Tests
// compare the rules of taskspec, the statements of package db and what happens
// in a database with the list, and docs/states.md comes from it.
package transitions

import (
	"slices"

	"example.com/runner/jobs"
)

// move is a change of a task's state by an action.
type move struct {
	From, To jobs.State
	By       string
}

var moves = []move{
	{jobs.Scheduled, jobs.Pending, "due"}, {jobs.Scheduled, jobs.Blocked, "due"}, {jobs.Scheduled, jobs.Cancelled, "cancel"},
	{jobs.Scheduled, jobs.Blocked, "pause"}, {jobs.Scheduled, jobs.Pending, "edit"}, {jobs.Scheduled, jobs.Blocked, "edit"},
	{jobs.Pending, jobs.Running, "claim"}, {jobs.Pending, jobs.Cancelled, "cancel"}, {jobs.Pending, jobs.Blocked, "pause"},
	{jobs.Pending, jobs.Scheduled, "edit"}, {jobs.Pending, jobs.Blocked, "edit"},
	{jobs.Blocked, jobs.Pending, "free"}, {jobs.Blocked, jobs.Scheduled, "free"}, {jobs.Blocked, jobs.Cancelled, "cancel"},
	{jobs.Blocked, jobs.Pending, "edit"}, {jobs.Blocked, jobs.Scheduled, "edit"},
	{jobs.Running, jobs.Completed, "finish"}, {jobs.Running, jobs.Failed, "finish"}, {jobs.Running, jobs.Retrying, "finish"},
	{jobs.Running, jobs.Cancelled, "finish"}, {jobs.Running, jobs.Pending, "return"}, {jobs.Running, jobs.Scheduled, "snooze"},
	{jobs.Retrying, jobs.Pending, "due"}, {jobs.Retrying, jobs.Cancelled, "cancel"}, {jobs.Retrying, jobs.Blocked, "pause"},
	{jobs.Retrying, jobs.Pending, "edit"}, {jobs.Retrying, jobs.Scheduled, "edit"}, {jobs.Retrying, jobs.Blocked, "edit"},
	{jobs.Completed, jobs.Pending, "retry"}, {jobs.Completed, jobs.Scheduled, "retry"}, {jobs.Completed, jobs.Blocked, "retry"},
	{jobs.Failed, jobs.Pending, "retry"}, {jobs.Failed, jobs.Scheduled, "retry"}, {jobs.Failed, jobs.Blocked, "retry"},
	{jobs.Cancelled, jobs.Pending, "retry"}, {jobs.Cancelled, jobs.Scheduled, "retry"}, {jobs.Cancelled, jobs.Blocked, "retry"},
}

// Allowed reports whether a task may go from one state to another in one step.
func Allowed(from, to jobs.State) bool {
	return slices.ContainsFunc(moves, func(m move) bool { return m.From == from && m.To == to })
}
