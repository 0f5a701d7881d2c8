package taskspec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Ordered reports whether a new task may have to wait for another task or for a
// user.
func Ordered(s *jobs.Spec) bool {
	return s.Paused || s.Lane != "" || len(s.DependsOn)+len(s.DependsOnAny)+len(s.DependsOnEarlier)+len(s.DependsOnAnyEarlier) > 0
}

// NewTask makes the task, still without an id, that a valid Spec enqueues at
// now.
func NewTask(s *jobs.Spec, now time.Time) jobs.Task {
	now = stored(now)
	t := jobs.Task{GenerationID: 1, Job: s.Job, Args: s.Args, Label: s.Label, Queue: s.Queue, State: jobs.Pending,
		Priority: s.Priority, Lane: s.Lane, UniqueKey: storedKey(s), RunAt: stored(now.Add(s.In)),
		MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, Options: s.Options, InputBytes: int64(len(s.Input)),
		Schedule: s.Schedule, Tick: stored(s.Tick), Batch: max(s.Batch, 0),
		CreatedAt: now, CreatedBy: s.CreatedBy, UpdatedAt: now}
	if t.Unique = (jobs.UniqueOptions{For: s.Unique.For}); len(s.Unique.States) > 0 {
		t.Unique.States = slices.Compact(slices.Sorted(slices.Values(s.Unique.States)))
	}
	if !s.RunAt.IsZero() {
		t.RunAt = stored(s.RunAt)
	}
	if t.RunAt.After(now) {
		t.State = jobs.Scheduled
	} else if t.Tick.IsZero() { // the task of a missed tick has a RunAt in the past, because ExpiresIn counts from it
		t.RunAt = now
	}
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

// keyPrefix returns what the stored unique key of a Spec has before the Spec's
// own: JOB# for a function, since a name of a job has no #, so that no keys of
// two jobs are the same. A key that has the prefix gets no second one: it may
// come from another task, by an edit or a copy.
func keyPrefix(s *jobs.Spec) string {
	prefix := s.Job + "#"
	if s.Job == command.Job || s.Unique.Global || strings.HasPrefix(s.UniqueKey, prefix) {
		return ""
	}
	return prefix
}

// argsHashSize is the length of the hash of UniqueOptions.Args.
const argsHashSize = 32

// storedKey returns the unique key of a Spec's task. With Args it contains a
// hash of the job and its arguments.
func storedKey(s *jobs.Spec) string {
	key := s.UniqueKey
	if s.Unique.Args {
		hash := sha256.New()
		hash.Write([]byte(s.Job))
		hash.Write([]byte{0})
		hash.Write(canonical(s.Args))
		if key == "" && s.Job == command.Job {
			key = s.Job
		}
		key = strings.TrimPrefix(key+":"+hex.EncodeToString(hash.Sum(nil))[:argsHashSize], ":")
	}
	if key == "" {
		return ""
	}
	return keyPrefix(s) + key
}

// ResolveKey replaces the unique key by the one that the task will have, which
// stays the same if somebody changes the arguments later.
func ResolveKey(s *jobs.Spec) {
	s.UniqueKey, s.Unique.Args = storedKey(s), false
}

// canonical returns JSON without white space, with the keys of each object
// sorted and numbers spelled as they are.
func canonical(text json.RawMessage) []byte {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return text // the text is empty, because the task has no arguments
	}

	sorted, err := usercode.Marshal(value)
	if err != nil {
		return text // an error is impossible, because value comes from JSON
	}
	return sorted
}

// DeletedTask returns what Enqueue returns if the Spec's unique key still
// belongs to a deleted task with this id.
func DeletedTask(id int64, s *jobs.Spec, now time.Time) jobs.Task {
	return jobs.Task{ID: id, UniqueKey: NewTask(s, now).UniqueKey, Kept: true}
}
