package db

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// This file stores schedules, and tick.go makes their tasks. Package db doesn't
// know cron expressions. Where a change needs the time of a tick, the caller
// passes a function (change, next, plan), which gets the present schedule
// inside the transaction. It must be quick, and may be called twice, because a
// write in a group may run twice (see commit.go).
//
// Invariants:
//   - next_at is NULL while a schedule is paused, or if it has no further tick.
//     Workers find the schedules that are due by the index of next_at alone.
//   - Each change of a schedule sets next_at in the same transaction. So no
//     worker enqueues a task by an old cron expression.
//   - schedule_open has a row for each unfinished task of a schedule. It may
//     also have rows of tasks that have ended, because the end of a task
//     doesn't change this table. The insert of the next task of the schedule
//     deletes some of these.
//   - The columns kept_* hold what the schedule needs to know of tasks that
//     were deleted, such as the state of the last one.

const selectSchedules = `SELECT schedules.*, i.data AS input, coalesce(tasks.state,
	kept_state) AS last_state, tasks.started_at AS last_started_at,
	tasks.finished_at AS last_finished_at, tasks.outcome AS last_outcome,
	CASE WHEN alert_after IS NOT NULL THEN {greatest}(coalesce(kept_success, 0), {greatest}(coalesce((SELECT finished_at FROM {tasks} AS t
	WHERE t.schedule = schedules.name AND t.tick IS NOT NULL AND t.state = 'completed' ORDER BY t.tick DESC LIMIT 1), 0),
	coalesce((SELECT finished_at FROM {tasks} AS t
	WHERE t.schedule = schedules.name AND t.tick IS NULL AND t.state = 'completed' ORDER BY t.id DESC LIMIT 1), 0))) END AS last_success
FROM {schedules} LEFT JOIN {schedule_inputs} AS i ON i.name = schedules.name LEFT JOIN {tasks} ON tasks.id = last_task_id`

// selectTicking reads the schedules with a tick at or before [1]. Index:
// schedules_next.
var (
	selectNamed   = query(selectSchedules + ` WHERE schedules.name = ?`)
	selectByName  = query(selectSchedules + ` ORDER BY schedules.name`)
	selectTicking = query(selectSchedules + ` WHERE next_at <= ? ORDER BY next_at`)
)

// selectNextTick returns the earliest next_at of all schedules, or 0 if no
// schedule has a next tick. It ignores the schedules in [1]: a JSON array with
// the name and the time updated_at of each schedule. Index: schedules_next.
var selectNextTick = query(`SELECT coalesce((SELECT min(next_at) FROM {schedules} WHERE next_at IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM {json_each} WHERE value->>0 = name AND CAST(value->>1 AS bigint) = updated_at)), 0)`)

// insertSchedule adds a schedule, or replaces the definition of the one of that
// name, which keeps its history and its pause.
var insertSchedule = command(`INSERT INTO {schedules} (name, cron, zone, overlap, catch_up, catch_up_window, jitter, next_at, created_at,
	updated_at, task, paused_at, paused_by, alert_after, boot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET cron = excluded.cron, zone = excluded.zone, overlap = excluded.overlap, catch_up = excluded.catch_up,
	catch_up_window = excluded.catch_up_window, jitter = excluded.jitter, next_at = excluded.next_at, updated_at = excluded.updated_at,
	task = excluded.task, alert_after = excluded.alert_after,
	boot = CASE WHEN schedules.cron = excluded.cron THEN schedules.boot ELSE excluded.boot END`)

var (
	insertScheduleInput = command(`INSERT INTO {schedule_inputs} (name, data) VALUES (?, ?)`)
	deleteScheduleInput = command(`DELETE FROM {schedule_inputs} WHERE name = ?`)
	deleteSchedule      = command(`DELETE FROM {schedules} WHERE name = ?`)
)

// pauseSchedule pauses schedule [4] at time [1] for user [2], and
// resumeSchedule resumes schedule [3] with the next tick [1]. Both are
// idempotent.
var (
	pauseSchedule = command(`UPDATE {schedules} SET next_at = NULL, paused_at = ?, paused_by = ?, updated_at = ? WHERE name = ?
		AND paused_at IS NULL`)
	resumeSchedule = command(`UPDATE {schedules} SET next_at = ?, paused_at = NULL, paused_by = NULL, updated_at = ? WHERE name = ?
		AND paused_at IS NOT NULL`)
)

// moveTick sets the next tick of schedule [3] to [1] and adds [2] to its
// skipped ticks.
var moveTick = command(`UPDATE {schedules} SET next_at = ?, skipped = skipped + ? WHERE name = ?`)

// noteTask records that task [2], which is due at [1], is the last one of
// schedule [3].
var noteTask = command(`UPDATE {schedules} SET last_at = ?, last_task_id = ?, kept_state = NULL, kept_duration = NULL WHERE name = ?`)

// selectOpen lists the unfinished tasks of schedule [1], and says whether each
// has a cancel request. dropClosed deletes the rows of finished or deleted
// tasks among the 20 oldest, so that its time doesn't grow with the number of
// unfinished tasks. findOpen adds all unfinished tasks of a new schedule: a
// deleted one of the same name may have left some. reopenTask adds task [1]
// again, which was retried.
var (
	selectOpen = query(`SELECT tasks.id, EXISTS (SELECT 1 FROM {cancel_requests} WHERE task_id = tasks.id
	AND cancel_requests.generation_id BETWEEN tasks.generation_id - 1 AND tasks.generation_id) AS cancel_requested
FROM {schedule_open} {join_in_order} {tasks} ON tasks.id = task_id
WHERE schedule_open.schedule = ? AND tasks.finished_at IS NULL ORDER BY task_id`)
	dropClosed = command(`DELETE FROM {schedule_open} WHERE schedule = ?1 AND task_id IN (
	SELECT task_id FROM {schedule_open} AS oldest WHERE oldest.schedule = ?1 ORDER BY task_id LIMIT 20)
	AND NOT EXISTS (SELECT 1 FROM {tasks} WHERE id = task_id AND finished_at IS NULL)`)
	addOpen  = command(`INSERT INTO {schedule_open} (schedule, task_id) VALUES (?, ?) ON CONFLICT DO NOTHING`)
	findOpen = command(`INSERT INTO {schedule_open} (schedule, task_id) SELECT schedule, id FROM {tasks} WHERE schedule = ?
		AND finished_at IS NULL ON CONFLICT DO NOTHING`)
	reopenTask = command(`INSERT INTO {schedule_open} (schedule, task_id) SELECT s.name, tasks.id
	FROM {tasks} {join_in_order} {schedules} AS s
ON s.name = tasks.schedule WHERE tasks.id = ? ON CONFLICT DO NOTHING`)
)

// hasTick is 1 if schedule [1] has a task for tick [2]. Index: tasks_tick.
var hasTick = query(`SELECT count(*) FROM {tasks} WHERE schedule = ? AND tick = ?`)

// selectRuns lists the last tasks of schedule [1]: at most [2] from ticks, and
// at most [2] that a user has run. Index: tasks_tick.
var selectRuns = query(`SELECT id FROM (SELECT id FROM {tasks} WHERE schedule = ?1 AND tick IS NOT NULL ORDER BY tick DESC
	LIMIT 0 + ?2) AS ticks
UNION ALL SELECT id FROM (SELECT id FROM {tasks} WHERE schedule = ?1 AND tick IS NULL ORDER BY id DESC LIMIT 0 + ?2) AS others`)

// Schedules returns all schedules, ordered by name.
func (d *DB) Schedules(ctx context.Context) ([]jobs.Schedule, error) {
	rows, err := readRows[scheduleRow](ctx, d, selectByName)
	if err != nil {
		return nil, err
	}
	return schedulesOf(rows)
}

// Runs returns the ids of the last n tasks of a schedule, newest first.
func (d *DB) Runs(ctx context.Context, name string, n int) ([]int64, error) {
	ids, err := readRows[int64](ctx, d, selectRuns, name, n)
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids[:min(n, len(ids))], err
}

// NextTick returns the earliest time at which any schedule ticks next, or zero.
// It ignores the schedules in except, unless somebody has changed them since
// the caller read them.
func (d *DB) NextTick(ctx context.Context, except []jobs.Schedule) (time.Time, error) {
	list := make([][]any, len(except))
	for i := range except {
		list[i] = []any{except[i].Name, except[i].UpdatedAt.UnixMilli()}
	}
	next, err := readValue[number](ctx, d, selectNextTick, jsonText(list))
	return next.time(), err
}

// ChangeSchedules calls change with all schedules, by name. It returns the
// schedules to add or replace, and the names of those to delete, whose tasks
// stay. All these changes are one transaction, and change may be called twice.
// In the boot with the id boot, a new schedule with @reboot doesn't tick.
func (d *DB) ChangeSchedules(ctx context.Context, boot string, now time.Time, change func([]jobs.Schedule) (put []jobs.Schedule,
	remove []string, err error)) error {
	return d.update(ctx, full, func(t *tx) error {
		var rows []scheduleRow
		if err := t.list(&rows, selectByName); err != nil {
			return err
		}

		have, err := schedulesOf(rows)
		if err != nil {
			return err
		}

		put, remove, err := change(have)
		if err != nil {
			return err
		}

		for _, name := range remove {
			if err := t.run(deleteSchedule, name); err != nil {
				return err
			}
		}

		for i := range put {
			if err := t.putSchedule(&put[i], boot, now); err != nil {
				return err
			}
		}

		return nil
	})
}

func (t *tx) putSchedule(s *jobs.Schedule, boot string, now time.Time) error {
	task, err := encodeTask(&s.Spec, s.OnTick)
	if err != nil {
		return err
	}
	if err := t.run(insertSchedule, s.Name, s.Cron, s.Zone, string(s.Overlap), string(s.CatchUp), millis(s.CatchUpWindow), millis(s.Jitter),
		nullTime(s.NextAt), now.UnixMilli(), now.UnixMilli(), task, nullTime(s.PausedAt), nullText(s.PausedBy),
		nullNumber(millis(s.AlertAfter)), nullText(boot)); err != nil {
		return err
	}
	if err := t.run(findOpen, s.Name); err != nil {
		return err
	}
	if err := t.run(deleteScheduleInput, s.Name); err != nil || len(s.Spec.Input) == 0 {
		return err
	}

	return t.run(insertScheduleInput, s.Name, s.Spec.Input)
}

// PauseSchedule pauses a schedule, and reports whether it exists.
func (d *DB) PauseSchedule(ctx context.Context, name, by string, now time.Time) (bool, error) {
	return d.changeNamed(ctx, name, func(t *tx, _ jobs.Schedule) error {
		return t.run(pauseSchedule, now.UnixMilli(), nullText(by), now.UnixMilli(), name)
	})
}

// ResumeSchedule resumes a schedule, and reports whether it exists. next
// returns the first tick after the pause.
func (d *DB) ResumeSchedule(ctx context.Context, name string, next func(jobs.Schedule) time.Time, now time.Time) (bool, error) {
	return d.changeNamed(ctx, name, func(t *tx, s jobs.Schedule) error {
		return t.run(resumeSchedule, nullTime(next(s)), now.UnixMilli(), name)
	})
}

// RunSchedule enqueues a task of a schedule that a user runs by hand, and
// reports whether the schedule exists. prepare may change the Spec of the task,
// and must be quick. It may be nil.
func (d *DB) RunSchedule(ctx context.Context, name, by string, now time.Time, prepare func(*jobs.Spec) error) (id int64, found bool,
	err error) {
	found, err = d.changeNamed(ctx, name, func(t *tx, s jobs.Schedule) error {
		spec := s.Spec
		spec.Schedule, spec.CreatedBy = name, by
		if prepare != nil {
			if err := prepare(&spec); err != nil {
				return err
			}
		}

		added, err := t.insertSpec(&spec, nil, now)
		if id = added.ID; err != nil {
			return err
		}
		return t.noteTask(name, id, now)
	})
	return id, found, err
}

// noteTask records a new task as the last one of a schedule, and as unfinished.
func (t *tx) noteTask(schedule string, id int64, due time.Time) error {
	if err := t.run(dropClosed, schedule); err != nil {
		return err
	}
	if err := t.run(addOpen, schedule, id); err != nil {
		return err
	}
	return t.run(noteTask, due.UnixMilli(), id, schedule)
}

func (d *DB) changeNamed(ctx context.Context, name string, change func(*tx, jobs.Schedule) error) (bool, error) {
	return updateAs(ctx, d, full, func(t *tx) (found bool, err error) {
		var rows []scheduleRow
		if err := t.list(&rows, selectNamed, name); err != nil || len(rows) == 0 {
			return false, err
		}
		s, err := rows[0].schedule()
		if err != nil {
			return true, err
		}
		return true, change(t, s)
	})
}

// ApplyOptions are the options of admin.ApplySchedules for schedules that exist
// already.
type ApplyOptions struct {
	Keep   bool // whether ApplySchedules fails (jobs.ErrConflict) instead of changing an existing schedule
	Prune  bool // whether schedules that are not in the list are removed
	DryRun bool // whether ApplySchedules only reports the changes and makes none
}

// Applied is what admin.ApplySchedules did with one schedule.
type Applied struct {
	Schedule jobs.Schedule // the schedule after the change, or before its removal
	Did      ScheduleChange
}

// ScheduleChange says what happened to a schedule.
type ScheduleChange string

// The changes of a schedule.
const (
	ScheduleAdded     ScheduleChange = "added"
	ScheduleChanged   ScheduleChange = "changed"
	ScheduleUnchanged ScheduleChange = "unchanged"
	ScheduleRemoved   ScheduleChange = "removed"
)

// Schedule returns the schedule of a name.
func (d *DB) Schedule(ctx context.Context, name string) (jobs.Schedule, error) {
	list, err := d.Schedules(ctx)
	if err != nil {
		return jobs.Schedule{}, err
	}
	i := slices.IndexFunc(list, func(s jobs.Schedule) bool { return s.Name == name })
	if i < 0 {
		return jobs.Schedule{}, NoSchedule(name)
	}
	return list[i], nil
}

// NoSchedule returns the error of a name that no schedule has.
func NoSchedule(name string) error {
	return &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoSchedule, Subject: name, What: "no schedule " + name}
}
