package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// rewriteTask replaces the settings of the waiting task [18] of generation
// [19]. Both [1] and [17] are the new state: the generation goes up only if the
// state changes.
var rewriteTask = command(`UPDATE {tasks} SET state = ?, queue = ?, job = ?, args = ?,
	label = ?, priority = ?, run_at = ?, expires_at = ?, max_attempts = ?,
	max_losses = ?, options = ?, unique_key = ?, lane = ?, parts = ?, waits = ?, updated_at = ?,
	generation_id = generation_id + CASE WHEN state <> ? THEN 1 ELSE 0 END
WHERE id = ? AND generation_id = ? AND ` + isWaiting)

// setOptions sets the options of task [2] of generation [3] to [1].
var setOptions = command(`UPDATE {tasks} SET options = ? WHERE id = ? AND generation_id = ?`)

// raiseTask sets the priority of the waiting task [2] of generation [3] to [1].
var raiseTask = command(`UPDATE {tasks} SET priority = ? WHERE id = ? AND generation_id = ? AND ` + isWaiting)

// selectRivals returns the highest priority among the pending tasks of queue
// [2] and the tasks that wait for lane [3], without task [1], or null. Indexes:
// tasks_pending (one seek for each job of the queue) and tasks_blocked.
var selectRivals = query(`WITH RECURSIVE jobs (job) AS (SELECT min(job) FROM {tasks} WHERE state = 'pending' AND queue = ?2
	UNION ALL SELECT (SELECT min(job) FROM {tasks} WHERE state = 'pending' AND queue = ?2 AND job > jobs.job) FROM jobs
	WHERE job IS NOT NULL)
SELECT max(priority) FROM (SELECT (SELECT priority FROM {tasks} WHERE state = 'pending' AND queue = ?2 AND job = jobs.job AND id <> ?1
	ORDER BY priority DESC LIMIT 1) AS priority FROM jobs WHERE job IS NOT NULL
	UNION ALL SELECT (SELECT priority FROM {tasks} WHERE waits = 0 AND lane = ?3 AND id <> ?1 ORDER BY priority DESC LIMIT 1)) AS rivals`)

// Edited is the result of an edit.
type Edited struct {
	State jobs.State // of the task after the edit; empty if there is no such task
	Text  string     // description of the changes, for people; empty if nothing changed
}

// edit is the new definition of a task.
type edit struct {
	spec   jobs.Spec // all settings but DependsOn and DependsOnAny: the task keeps its dependencies
	due    bool      // whether to set the due time of the task to that of spec
	expiry bool      // whether to set the expiry of the task to that of spec
	input  bool      // whether to replace the stdin of the command
	text   string    // as in Edited
}

// Edit changes the settings of a waiting task, or the metadata of any task. The
// options get its Spec, and must not take long; an error that one stores in
// Spec.Err comes back unchanged. ErrNotFound means that there is no such task,
// and ErrConflict that it runs or has finished, or that another task holds the
// new unique key.
func (d *DB) Edit(
	ctx context.Context, id int64, by string, now time.Time, options []jobs.Option,
) (done Edited, err error) {
	err = d.updateAlone(ctx, full, func(t *tx) (err error) {
		done, err = t.edit(id, by, now, options)
		return err
	})
	return done, err
}

func (t *tx) edit(id int64, by string, now time.Time, options []jobs.Option) (Edited, error) {
	s, err := t.changeable(id, now)
	done := Edited{State: s.State}
	if err != nil {
		return done, err
	}
	if s.State == "" {
		return done, NoTask(id)
	}

	var rows []row
	if err := t.list(&rows, selectTask, id); err != nil {
		return done, err
	}

	was := rows[0].task()
	e, err := editOf(&was, rows[0].task(), now, options)
	if err != nil || e.text == "" {
		return done, err
	}
	if err := errors.Join(t.checkSpace(), t.checkKey(&e, was, now)); err != nil {
		return done, err
	}

	if canMove(s.State) {
		err = t.redefine(s, was, &e, now)
	} else {
		err = t.setOptions(s, &e.spec.Options)
	}
	if err == nil {
		err = t.record(id, TaskChange{At: now, By: by, Action: ActionEdit, Text: e.text})
	}
	if err == nil {
		done.Text = e.text
		done.State, err = t.state(id)
	}

	return done, err
}

// editOf returns what options make of the settings of a task. The two tasks are
// equal and share no memory, because an option may write into maps and slices.
func editOf(t *jobs.Task, copied jobs.Task, now time.Time, options []jobs.Option) (edit, error) {
	settings := func(t *jobs.Task) jobs.Spec {
		s := taskspec.SpecOf(t)
		s.DependsOn, s.DependsOnAny, s.RunAt, s.CreatedBy = nil, nil, t.RunAt, t.CreatedBy
		return s
	}
	was, e := settings(t), edit{spec: settings(&copied)}
	s := &e.spec
	for _, option := range options {
		if option == nil {
			return e, &jobs.FieldError{Field: "options", Msg: "an option is nil"}
		}
		option(s)
	}
	if s.Err != nil {
		return e, s.Err
	}
	taskspec.ResolveKey(s)
	if s.In != 0 && s.RunAt.Equal(was.RunAt) {
		s.RunAt = time.Time{} // In replaces the due time
	}

	rest := *s
	rest.Metadata = was.Metadata
	onlyMetadata := s.In == 0 && s.Input == nil && len(taskspec.Changes(&was, &rest)) == 0
	if !canMove(t.State) && !onlyMetadata {
		return e, notWaiting(t)
	}
	if err := cmp.Or(keepsPlace(&was, s), taskspec.Validate(s)); err != nil {
		return e, err
	}

	switch {
	case onlyMetadata:
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

	e.due = !s.RunAt.Equal(was.RunAt)
	e.expiry = s.ExpiresIn != was.ExpiresIn || !s.ExpiresAt.IsZero() || e.due && !t.ExpiresAt.IsZero()
	e.input = s.Input != nil
	changed := taskspec.Changes(&was, s)
	if e.input && len(s.Input) == 0 {
		changed = append(changed, "input –")
	}

	e.text = strings.Join(changed, ", ")
	return e, nil
}

// keepsPlace returns an error if an edit changes what a task can't change after
// it was added.
func keepsPlace(was, is *jobs.Spec) error {
	switch {
	case is.Job != was.Job:
		return &jobs.FieldError{Field: "job", Msg: "an edit cannot change the job of a task"}
	case len(is.DependsOn)+len(is.DependsOnAny)+len(is.DependsOnEarlier)+len(is.DependsOnAnyEarlier) > 0:
		return &jobs.FieldError{Field: "after", Msg: "an edit cannot change the tasks that a task waits for"}
	case is.Paused:
		return &jobs.FieldError{Field: "paused", Msg: "an edit cannot pause a task; use Pause"}
	}
	return nil
}

func notWaiting(t *jobs.Task) error {
	what := "has finished"
	if t.State == jobs.Running {
		what = "is running"
	}
	return &jobs.Error{Kind: jobs.ErrConflict, Subject: fmt.Sprint(t.ID), What: fmt.Sprintf("task %d %s", t.ID, what),
		Why: []string{"only its metadata can change"}}
}

// redefine gives a waiting task its new settings.
func (t *tx) redefine(s taskStatus, was jobs.Task, e *edit, now time.Time) error {
	to := editedTask(was, e, now)
	keepsLane := to.Lane == was.Lane && taskspec.HoldsLane(was.State)
	due := to.RunAt
	if !e.due && (was.State == jobs.Pending || was.State == jobs.Blocked && !was.Waits) {
		due = now // it was due before the edit, whatever the clock says now
	}

	to.State = taskspec.InitialState(due, now, was.Waits, to.Lane != "" && !keepsLane)
	if was.State == jobs.Retrying && to.State == jobs.Scheduled && to.Lane == was.Lane {
		to.State = was.State // keep the state retrying: a scheduled task would lose its lane
	}
	if to.State == was.State && !e.due {
		to.UpdatedAt = was.UpdatedAt
	}
	if err := t.rewrite(s, &to, settings{depends: was.Depends, waits: waitsValue(to.State, was.Waits)}); err != nil {
		return err
	}
	if e.input {
		if err := t.setInput(was.ID, e.spec.Input); err != nil {
			return err
		}
	}
	if err := t.changeKey(&was, &to); err != nil {
		return err
	}

	return t.freeLanesOf(was.Lane, to.Lane, now)
}

func (t *tx) setOptions(s taskStatus, o *jobs.Options) error {
	options, err := taskspec.EncodeOptions(o)
	if err != nil {
		return err
	}
	return t.execOne(setOptions, nullText(options), s.ID, s.Generation)
}

func (t *tx) rewrite(s taskStatus, to *jobs.Task, with settings) error {
	values, err := appendDefinition(nil, to)
	if err != nil {
		return err
	}
	values = append(values, with.values(to)...)
	return t.execOne(rewriteTask, append(values, to.UpdatedAt.UnixMilli(), string(to.State), s.ID, s.Generation)...)
}

func editedTask(was jobs.Task, e *edit, now time.Time) jobs.Task {
	to := taskspec.NewTask(&e.spec, now)
	if !e.due {
		to.RunAt = was.RunAt
	}
	if !e.expiry {
		to.ExpiresAt = was.ExpiresAt
	}
	if !e.input {
		to.InputBytes = was.InputBytes
	}
	return to
}

// checkKey returns an error if another task holds the new unique key.
func (t *tx) checkKey(e *edit, was jobs.Task, now time.Time) error {
	if e.spec.UniqueKey == "" || e.spec.UniqueKey == was.UniqueKey {
		return nil
	}
	holder, err := t.holder(e.spec.UniqueKey, now)
	if err == nil && holder != 0 {
		err = &jobs.Error{Kind: jobs.ErrConflict, What: fmt.Sprintf("task %d has the unique key %q", holder, e.spec.UniqueKey)}
	}
	return err
}

// changeKey frees the old unique key of a task if the task has a new key, and
// stores how long the task holds its key.
func (t *tx) changeKey(was, to *jobs.Task) error {
	if was.UniqueKey != "" && was.UniqueKey != to.UniqueKey {
		if err := t.run(freeKey, was.UniqueKey, was.ID); err != nil {
			return err
		}
	}
	to.ID, to.CreatedAt = was.ID, was.CreatedAt
	return t.holdKey(to)
}

func (t *tx) setInput(id int64, input []byte) error {
	if err := t.run(deleteInput, id); err != nil || len(input) == 0 {
		return err
	}
	return t.run(insertInput, id, input)
}

// PutFirst gives waiting tasks a priority above that of all pending tasks of
// their queue, and of all tasks that wait for their lane. The first id gets the
// highest priority. A task whose priority is already high enough keeps it.
// PutFirst does not change tasks that run or have finished.
func (d *DB) PutFirst(ctx context.Context, ids []int64, by string, now time.Time) ([]jobs.ActionResult, error) {
	last := slices.Clone(ids)
	slices.Reverse(last)
	done, err := d.Apply(ctx, last, func(t *tx, id int64) (jobs.ActionResult, error) {
		return t.putFirst(id, by, now)
	})
	slices.Reverse(done)
	return done, err
}

func (t *tx) putFirst(id int64, by string, now time.Time) (jobs.ActionResult, error) {
	s, err := t.status(id)
	m := jobs.ActionResult{ID: id, State: s.State, Done: canMove(s.State)}
	if err != nil || !m.Done {
		return m, err
	}

	var rivals *int64
	if err := t.scan(selectRivals, []any{id, s.Queue, nullText(s.Lane)}, &rivals); err != nil || rivals == nil || s.Priority > *rivals {
		return m, err
	}

	to := min(*rivals+1, math.MaxInt32)
	if to == s.Priority {
		return m, nil
	}
	if err := t.execOne(raiseTask, to, id, s.Generation); err != nil {
		return m, err
	}

	return m, t.record(id, TaskChange{At: now, By: by, Action: ActionFirst, Text: fmt.Sprintf("priority %d", to)})
}
