package ui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// PauseTasks keeps waiting tasks from starting until ResumeTasks. Tasks that
// run or have finished stay as they are.
func PauseTasks(
	ctx context.Context, r *runner.Runner, ids []int64, reason string,
) ([]runner.ActionResult, error) {
	return apply(ctx, r, ids, db.PauseTask(db.CurrentUser(), reason, time.Now()))
}

// ResumeTasks ends the pause of tasks. A resumed task starts under the same
// conditions as a new task.
func ResumeTasks(ctx context.Context, r *runner.Runner, ids []int64) ([]runner.ActionResult, error) {
	return apply(ctx, r, ids, db.ResumeTask(db.CurrentUser(), time.Now()))
}

func apply(ctx context.Context, r *runner.Runner, ids []int64, act db.Action) ([]runner.ActionResult, error) {
	done, err := db.Of(r).Apply(ctx, ids, act)
	db.Of(r).Notify()
	return done, err
}

// PutFirst puts waiting tasks before all pending tasks of their queue. The
// first id gets the highest priority.
func PutFirst(ctx context.Context, r *runner.Runner, ids []int64) ([]runner.ActionResult, error) {
	done, err := db.Of(r).PutFirst(ctx, ids, db.CurrentUser(), time.Now())
	db.Of(r).Notify()
	return done, err
}

// Edited is the result of an edit.
type Edited struct {
	runner.ActionResult
	Text string // description of the changes, for people; empty if nothing changed
}

// Edit changes the settings of a waiting task. change gets the task and its
// settings, and modifies the Spec. It must be fast, because nobody else can
// write to the database until it returns. Edit validates the new settings.
func Edit(
	ctx context.Context, r *runner.Runner, id int64, change func(jobs.Task, *jobs.Spec) error,
) (Edited, error) {
	var e db.Edit
	now := time.Now()
	done, err := db.Of(r).Edit(ctx, id, db.CurrentUser(), now, func(t jobs.Task) (_ db.Edit, err error) {
		e, err = editOf(t, now, change)
		return e, err
	})
	db.Of(r).Notify()
	return Edited{done, e.Text}, err
}

// editOf returns what change makes of a task's settings.
func editOf(t jobs.Task, now time.Time, change func(jobs.Task, *jobs.Spec) error) (db.Edit, error) {
	was := taskspec.SpecOf(&t)
	was.DependsOn, was.DependsOnAny, was.RunAt, was.CreatedBy = nil, nil, t.RunAt, t.CreatedBy
	e := db.Edit{Spec: was}
	s := &e.Spec
	if err := change(t, s); err != nil {
		return e, err
	}
	if err := taskspec.Validate(s); err != nil {
		return e, err
	}

	switch {
	case s.MaxAttempts > 0 && s.MaxAttempts <= t.Attempt:
		return e, &jobs.FieldError{Field: "max_attempts",
			Msg: fmt.Sprintf("%d attempts have started; use %d or more", t.Attempt, t.Attempt+1)}
	case s.MaxLosses < t.Losses:
		return e, &jobs.FieldError{Field: "max_losses",
			Msg: fmt.Sprintf("%d workers were lost; use %d or more", t.Losses, t.Losses)}
	}

	if s.In != 0 {
		s.RunAt, s.In = now.Add(s.In).Round(time.Millisecond), 0
	}

	e.Due = !s.RunAt.Equal(was.RunAt)
	e.Expiry = s.ExpiresIn != was.ExpiresIn || !s.ExpiresAt.IsZero() || e.Due && !t.ExpiresAt.IsZero()
	e.Input = s.Input != nil
	changed := taskspec.Changes(&was, s)
	if e.Input && len(s.Input) == 0 {
		changed = append(changed, "input –")
	}

	e.Text, e.None = strings.Join(changed, ", "), len(changed) == 0
	return e, nil
}
