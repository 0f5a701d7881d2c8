package db

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A finish writes the end of an attempt. It's the first part of a worker's
// Cycle. Package taskspec decides the new state (taskspec.Next). The same
// transaction writes all effects: the output, the counters, the dependents and
// the lane of the task (end.go).
//
// Invariants:
//   - An end changes a task only while the worker owns the claim. Each
//     statement checks the id, the generation, the worker and the state, and
//     the caller counts the changed rows. The end of an attempt that has lost
//     its claim is reported as Fenced and writes nothing.
//   - A finish can be repeated if its result was lost. The second call finds
//     the record of the first, and returns the same change.
//   - A cancel request that is committed before the end decides the new state,
//     unless the attempt completes its task: a completion wins.
//   - A finish is durable when it returns, unless Options.Normal is set.
//
// Most ends are completions, which need the fewest columns. So they have a
// statement of their own, and many share one (complete.go). All other ends go
// through finishTask, one by one.

// finishTask ends the attempt of task [10] that worker [12] claimed as
// generation [11], if the worker still owns it. It changes nothing if the task
// has a cancel request, unless [13] says that the worker knows of it. [1] is
// the new state, and [2] to [9] are the other values in the order of the
// columns.
var finishTask = command(`UPDATE {tasks} SET generation_id = generation_id + 1, lease_expires_at = NULL, state = ?, outcome = ?, result = ?,
	run_at = coalesce(?, run_at), attempt = ?, losses = ?, started_at = ?, finished_at = ?, updated_at = ?
WHERE id = ? AND generation_id = ? AND worker = ? AND {unindexed}state = 'running'
	AND (? = 1 OR NOT EXISTS (SELECT 1 FROM {cancel_requests} WHERE task_id = tasks.id
	AND cancel_requests.generation_id BETWEEN tasks.generation_id - 1 AND tasks.generation_id))`)

// completeTask is finishTask for a completed task, the most common end. Writing
// only the columns that change takes a fifth less time.
var completeTask = command(`UPDATE {tasks} SET generation_id = generation_id + 1,
	lease_expires_at = NULL, state = 'completed', outcome = ?, result = ?,
	started_at = ?, finished_at = ?, updated_at = ?
WHERE id = ? AND generation_id = ? AND worker = ? AND {unindexed}state = 'running'`)

// insertAttempt stores an attempt that did not complete its task. One that did
// needs no row, since the row of the task holds the record; without it a finish
// takes 9.9 µs instead of 13.7 µs. A claim ends only once, so only plain SQL
// can have written a row with the same key. It's replaced, because an error
// would stop the worker.
var insertAttempt = command(`INSERT INTO {attempts} (task_id, generation_id, attempt,
	state, counted, worker, started_at, finished_at, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (task_id, generation_id) DO UPDATE SET attempt = excluded.attempt, state = excluded.state, counted = excluded.counted,
	worker = excluded.worker, started_at = excluded.started_at, finished_at = excluded.finished_at, outcome = excluded.outcome`)

// selectRefused tells why finishTask changed nothing: the state of task [5],
// and whether worker [2] has already ended its claim of generation [1] in the
// same way, with the state [3], at the time [4] and with the reason [6]. A loss
// that another worker has recorded doesn't count. "generation_id - 1 = ?1",
// because PostgreSQL would read the parameter in "?1 + 1" as an integer of 32
// bits.
var selectRefused = query(`SELECT state, tasks.generation_id, coalesce(worker, 0),
	coalesce(requested_at, 0), coalesce(now, 0), coalesce(text, ''),
	state = 'completed' AND ?3 = 'completed' AND tasks.generation_id - 1 = ?1 AND worker = ?2 AND finished_at = ?4 OR
	EXISTS (SELECT 1 FROM {attempts} WHERE task_id = tasks.id AND generation_id = ?1 AND worker = ?2 AND state = ?3 AND finished_at = ?4
		AND outcome ->> 'reason' IS NOT DISTINCT FROM ?6)
FROM {tasks} LEFT JOIN {cancel_requests} ON task_id = tasks.id
	AND cancel_requests.generation_id BETWEEN tasks.generation_id - 1 AND tasks.generation_id
	WHERE tasks.id = ?5`)

// selectCompleted reports whether worker [3] has completed task [1] at time [4]
// with its claim of generation [2].
var selectCompleted = query(`SELECT EXISTS (SELECT 1 FROM {attempts} WHERE task_id = ?1 AND generation_id = ?2 AND worker = ?3
	AND state = 'completed' AND finished_at = ?4)
	OR EXISTS (SELECT 1 FROM {tasks} WHERE id = ?1 AND generation_id = ?2 + 1 AND worker = ?3 AND state = 'completed'
	AND finished_at = ?4)`)

// releaseTask returns task [2] to its queue if worker [4] has claimed it as
// generation [3] but has not started it. [1] is the time. It changes nothing if
// the task has a cancel request.
var releaseTask = command(`UPDATE {tasks} SET generation_id = generation_id + 1,
	lease_expires_at = NULL, state = 'pending', attempt = attempt - 1,
	started_at = (SELECT max(started_at) FROM {attempts} WHERE task_id = tasks.id), updated_at = ?
WHERE id = ? AND generation_id = ? AND worker = ? AND {unindexed}state = 'running'
	AND NOT EXISTS (SELECT 1 FROM {cancel_requests} WHERE task_id = tasks.id
	AND cancel_requests.generation_id BETWEEN tasks.generation_id - 1 AND tasks.generation_id)`)

// Finish is the end of an attempt.
type Finish struct {
	Task    jobs.Task // as it was claimed
	Outcome taskspec.Outcome
	Output  Output // part of the attempt's output that is not stored yet
	Release bool   // whether the task was claimed and never started; then Outcome and Output are ignored

	Progress json.RawMessage // last reported progress, if it is not stored yet
	// Time at which the attempt called FinishTx in a transaction of the
	// application. If that was committed, the task is completed; otherwise
	// Outcome counts.
	InTx time.Time

	revoked bool // whether the claim was revoked; then the task is one generation above the claim
}

// Finished is the result of a Finish.
type Finished struct {
	Change taskspec.Change // new state of the task
	Fenced bool            // whether the attempt had lost its task, so that nothing was written
	InTx   bool            // whether the attempt had completed its task by FinishTx
}

// separately is for finish: no completions share statements.
const separately = false

// finish ends attempts of worker, and makes the changes that follow from it
// (see afterEnd). With together, completions may share statements. Then the
// error may be errRefusedTogether: the caller must call finish again in a new
// transaction, without together.
func (t *tx) finish(worker int64, list []Finish, together bool, now time.Time) ([]Finished, error) {
	if len(list) == 0 {
		return nil, nil
	}

	done := make([]Finished, len(list))
	ends := make([]end, 0, len(list))
	var completed []completion
	if together && len(list) > 1 {
		var err error
		if completed, err = t.completeMany(worker, list, now); err != nil {
			return nil, err
		}
	}

	for i := range list {
		if len(completed) > 0 && completed[0].at == i {
			task := &list[i].Task
			done[i].Change = completed[0].change
			ends = append(ends, end{id: task.ID, queue: task.Queue, lane: task.Lane, state: jobs.Completed})
			completed = completed[1:]
			continue
		}

		var err error
		if done[i], ends, err = t.finishOne(worker, &list[i], ends, now); err != nil {
			return nil, err
		}
	}

	return done, t.afterEnd(ends, now)
}

// finishOne ends one attempt. It adds the task to ends if it has then finished
// or given up its lane.
func (t *tx) finishOne(worker int64, f *Finish, ends []end, now time.Time) (Finished, []end, error) {
	done, wrote, err := t.finishAttempt(worker, f, now)
	if err == nil && wrote {
		err = t.addHooks(f, done.Change, now)
	}
	state := done.Change.State
	if err != nil || !wrote || taskspec.HoldsLane(state) {
		return done, ends, err
	}
	e := end{id: f.Task.ID, queue: f.Task.Queue, lane: f.Task.Lane, state: state}
	return done, append(ends, e), nil
}

// finishAttempt ends one attempt. wrote is false if the attempt doesn't own its
// task any more, or if an earlier write has already ended it.
//
// If the task has a cancel request that the worker doesn't know of, tryFinish
// changes nothing. finishAttempt then reads the request and tries again, so
// that taskspec.Next can take it into account. The caller can repeat a write
// whose result was lost: it's recognised by its worker, time and reason.
func (t *tx) finishAttempt(worker int64, f *Finish, now time.Time) (done Finished, wrote bool, err error) {
	task := f.Task
	for {
		change, changed, err := t.tryFinish(worker, task, f, now)
		if err != nil || changed {
			return Finished{Change: change}, changed, err
		}
		if !f.InTx.IsZero() {
			if done, err := t.finishedBefore(worker, f); done.InTx || err != nil {
				return done, false, err
			}
		}

		var state, cancelText string
		var generation, owner int64
		var cancelAt number
		var cancelNow, before boolean
		err = t.scan(selectRefused, []any{f.Task.GenerationID, worker, string(change.AttemptState), f.Outcome.Finished.UnixMilli(),
			f.Task.ID, nullText(f.Outcome.Reason)}, &state, &generation, &owner, &cancelAt, &cancelNow, &cancelText, &before)
		switch {
		case errors.Is(err, sql.ErrNoRows): // the task was deleted
			return Finished{Fenced: true}, false, nil
		case err != nil:
			return Finished{}, false, err
		case bool(before): // an earlier write has ended the attempt, but its reply was lost
			return Finished{Change: change}, false, nil
		case state == string(jobs.Running) && generation == task.GenerationID && owner == worker && task.CancelRequestedAt.IsZero() &&
			cancelAt != 0:
			task.CancelRequestedAt, task.CancelNow, task.CancelText = cancelAt.time(), bool(cancelNow), cancelText
		default:
			return Finished{Fenced: true}, false, nil
		}
	}
}

// finishedBefore sets InTx if the attempt has completed its task by FinishTx.
// It then stores the rest of the attempt's output.
func (t *tx) finishedBefore(worker int64, f *Finish) (Finished, error) {
	var is bool
	err := t.scan(selectCompleted, []any{f.Task.ID, f.Task.GenerationID, worker, f.InTx.UnixMilli()}, &is)
	if err != nil || !is {
		return Finished{}, err
	}
	done := Finished{Change: taskspec.Change{State: jobs.Completed, AttemptState: jobs.Completed, Counted: true}, InTx: true}
	return done, t.output(f.Task, f.Output)
}

func (t *tx) tryFinish(worker int64, task jobs.Task, f *Finish, now time.Time) (taskspec.Change, bool, error) {
	requested := !task.CancelRequestedAt.IsZero()
	o := f.Outcome
	if f.Release {
		if !requested {
			n, err := t.exec(releaseTask, now.UnixMilli(), task.ID, task.GenerationID, worker)
			return taskspec.Change{State: jobs.Pending}, n == 1, err
		}
		o = taskspec.Outcome{Reason: jobs.ReasonCancelled, Started: now, Finished: now}
	}

	c := taskspec.Next(task, o, now)
	if f.Release {
		c.Attempt = max(task.Attempt-1, 0) // a released claim counts as no attempt, so the task gets the count that it had before the claim
	}

	n, err := t.writeEnd(worker, task, o, c, now)
	if err != nil || n == 0 || f.Release {
		return c, n == 1, err
	}
	if err := t.output(task, f.Output); err != nil {
		return c, false, err
	}
	if f.Progress != nil {
		if _, err := t.exec(setLastProgress, task.ID, task.GenerationID, string(f.Progress)); err != nil {
			return c, false, err
		}
	}
	if c.State == jobs.Completed {
		return c, true, nil
	}

	claimed := task.GenerationID
	if f.revoked {
		claimed--
	}

	_, err = t.exec(insertAttempt, task.ID, claimed, int64(task.Attempt), string(c.AttemptState), c.Counted, worker, o.Started.UnixMilli(),
		o.Finished.UnixMilli(), encodeOutcome(o, o.Reason, o.Error, true))
	return c, true, err
}

func (t *tx) writeEnd(worker int64, task jobs.Task, o taskspec.Outcome, c taskspec.Change, now time.Time) (int64, error) {
	if c.State == jobs.Completed { // a completion wins over a cancel request, so completeTask does not look for one
		return t.exec(completeTask, encodeOutcome(o, "", "", true), nullText(c.Result), o.Started.UnixMilli(), o.Finished.UnixMilli(),
			now.UnixMilli(), task.ID, task.GenerationID, worker)
	}

	var finishedAt any
	if c.State.Finished() {
		finishedAt = o.Finished.UnixMilli()
	}
	return t.exec(finishTask, string(c.State), encodeOutcome(o, c.Reason, c.Error, finishedAt != nil), nullText(c.Result),
		nullTime(c.RunAt), int64(c.Attempt),
		int64(c.Losses), o.Started.UnixMilli(), finishedAt, now.UnixMilli(), task.ID, task.GenerationID, worker,
		!task.CancelRequestedAt.IsZero())
}
