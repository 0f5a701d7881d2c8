package taskspec

import (
	"time"

	"example.com/runner/jobs"
)

// Ordered reports whether a new task may have to wait for another task or for a user: because it is paused, or has a lane or dependencies.
func Ordered(s *jobs.Spec) bool {
	return s.Paused || s.Lane != "" || len(s.After)+len(s.AfterAny)+len(s.Earlier)+len(s.EarlierAny) > 0
}

// NewTask makes a task from a Spec. The task has no id yet. The parameter "now" is the time at which the task is enqueued. NewTask does not
// validate the Spec.
func NewTask(s *jobs.Spec, now time.Time) jobs.Task {
	now = stored(now)
	t := jobs.Task{GenerationID: 1, Job: s.Job, Args: s.Args, Label: s.Label, Queue: s.Queue, State: jobs.Pending, Priority: s.Priority,
		Lane: s.Lane, RunAt: stored(now.Add(s.In)), MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, Options: s.Options,
		InputBytes: int64(len(s.Input)), Schedule: s.Schedule, Tick: stored(s.Tick), Batch: max(s.Batch, 0), CreatedAt: now,
		CreatedBy: s.CreatedBy, UpdatedAt: now}
	if !s.RunAt.IsZero() {
		t.RunAt = stored(s.RunAt)
	}
	if t.RunAt.After(now) {
		t.State = jobs.Scheduled
	} else if t.Tick.IsZero() { // the task of a missed tick has a RunAt in the past, because ExpiresIn counts from it
		t.RunAt = now
	}
	t.UniqueKey = uniqueKey(s)
	if s.ExpiresIn > 0 {
		t.ExpiresAt = stored(t.RunAt.Add(s.ExpiresIn))
	}
	if !s.ExpiresAt.IsZero() {
		t.ExpiresAt = stored(s.ExpiresAt)
	}
	return t
}

// stored returns a time as the database returns it: in UTC, in milliseconds,
// without a monotonic part.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
