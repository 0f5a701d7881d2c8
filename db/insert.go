package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// insertTask adds a task; its values are those of insertSpec. Our own rows are born with generation 1 and their true state.
const insertTask = `INSERT INTO tasks (` + insertColumns + `) VALUES ` + insertRow

const insertRow = `(1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insertOrdered is insertTask for a task with a lane, or one that names others to wait for.
const insertOrdered = `INSERT INTO tasks (` + insertColumns + `, after, after_any, lane, waits, reason, error, finished_at)
VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const insertColumns = `generation_id, job, args, label, queue, state, priority, unique_key, run_at, expires_at,
	max_attempts, max_losses, timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on, output_limit, path, cwd, env,
	env_file, input_bytes, created_at, created_by, updated_at, schedule, tick`

// replaceTask gives task [30], which has not started, the settings [1] to [23] of another; what it waits for [24], [25], its lane [26]
// and place there [27]; time [28]; its new state again [29], as only a change of state is a new generation. No row: it has started.
const replaceTask = `UPDATE tasks SET job = ?, args = ?, label = ?, queue = ?, state = ?, priority = ?, unique_key = ?, run_at = ?,
	expires_at = ?, max_attempts = ?, max_losses = ?, timeout = ?, kill_after = ?, backoff = ?, backoff_delay = ?, backoff_max = ?,
	retry_on = ?, output_limit = ?, path = ?, cwd = ?, env = ?, env_file = ?, input_bytes = ?, after = ?, after_any = ?, lane = ?,
	waits = ?, updated_at = ?, generation_id = generation_id + CASE WHEN state <> ? THEN 1 ELSE 0 END
WHERE id = ? AND finished_at IS NULL AND started_at IS NULL`

// selectUnique finds the unfinished task with key [1]. Index: tasks_unique.
const selectUnique = `SELECT id FROM tasks WHERE unique_key = ? AND finished_at IS NULL`

const insertInput = `INSERT INTO inputs (task_id, data) VALUES (?, ?)`

const selectInput = `SELECT data FROM inputs WHERE task_id = ?`

// Inserted is the answer to one Spec.
type Inserted struct {
	ID   int64
	Kept bool // an unfinished task had its unique key: ID is that one's, and nothing was added
	// Replaced: that task had not started, and became the one that was asked for. Then Kept is false.
	Replaced bool
}

// Insert adds tasks at now, all or none, and returns when they are on the disk. The specs must be valid.
func (d *DB) Insert(ctx context.Context, specs []jobs.Spec, now time.Time) ([]Inserted, error) {
	var of *inserter // of the whole group
	var from int
	err := d.submit(ctx, &request{level: full, shared: !slices.ContainsFunc(specs, alone), adds: true, run: func(t *tx) error {
		of = t.inserter()
		from = len(of.added)
		for i := range specs {
			if err := of.add(&specs[i], from, now); err != nil {
				return err
			}
		}
		return nil
	}}, false)
	if err != nil {
		return nil, err
	}
	return of.added[from : from+len(specs) : from+len(specs)], nil
}

// InsertSeq is Insert for any number of tasks. It holds the write lock while it asks specs for the next one, once for each; an
// error that comes from there undoes everything and is returned as it is.
func (d *DB) InsertSeq(ctx context.Context, specs iter.Seq2[jobs.Spec, error], now time.Time) ([]Inserted, error) {
	var of *inserter
	err := d.updateAlone(ctx, full, func(t *tx) error {
		of = t.inserter()
		for spec, err := range specs {
			if err == nil {
				err = ctx.Err() // asked between rows: no statement is ever interrupted
			}
			if err != nil {
				return err
			}
			if err := of.add(&spec, 0, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return of.added, nil
}

// insertSpec adds one task. added are those before it in the same call.
func (t *tx) insertSpec(spec *jobs.Spec, added []Inserted, now time.Time) (Inserted, error) {
	if err := t.room(); err != nil {
		return Inserted{}, err
	}
	task := spec.Task(now)
	settings, err := appendSettings(make([]any, 0, insertedValues+7), &task) // with what insertOrdered has besides
	if err != nil {
		return Inserted{}, err
	}
	if task.UniqueKey != "" {
		var id int64
		switch err := t.scan(selectUnique, []any{task.UniqueKey}, &id); {
		case err == nil && spec.Replace:
			o, err := t.orderingOf(spec, added)
			if err != nil {
				return Inserted{}, err
			}
			return t.replace(id, settings, spec.Input, task, o, now)
		case err == nil:
			return Inserted{ID: id, Kept: true}, nil
		case !errors.Is(err, sql.ErrNoRows):
			return Inserted{}, err
		}
	}
	o, err := t.orderingOf(spec, added)
	if err != nil {
		return Inserted{}, err
	}
	var id int64 // the write lock is held: nobody can have taken the key since
	values := appendOrigin(settings, &task)
	if o.used {
		id, err = t.insertOrdered(&task, values, o, now)
	} else {
		id, err = t.insert(insertTask, values...)
	}
	if err == nil && len(spec.Input) > 0 {
		_, err = t.exec(insertInput, id, spec.Input)
	}
	return Inserted{ID: id}, err
}

// appendSettings adds what a task was asked to be: the first columns of insertColumns, but for the generation.
func appendSettings(values []any, task *jobs.Task) ([]any, error) {
	var env any
	if len(task.Env) > 0 {
		object, err := jobs.MarshalArgs(task.Env) // as Validate measures it
		if err != nil {
			return nil, err
		}
		env = string(object)
	}
	return append(values, task.Job, nullText(task.Args), nullText(task.Label), task.Queue, string(task.State), int64(task.Priority),
		nullText(task.UniqueKey), task.RunAt.UnixMilli(), nullTime(task.ExpiresAt), nullNumber(task.MaxAttempts), int64(task.MaxLosses),
		nullNumber(millis(task.Timeout)), millis(task.KillAfter), string(task.Backoff.Strategy), millis(task.Backoff.Delay),
		millis(task.Backoff.Max), nullText(task.RetryOn), task.OutputLimit, nullText(task.Path), nullText(task.Cwd), env,
		nullText(task.EnvFile), task.InputBytes), nil
}

// appendOrigin adds where a task comes from: the rest of insertColumns.
func appendOrigin(values []any, task *jobs.Task) []any {
	return append(values, task.CreatedAt.UnixMilli(), nullText(task.CreatedBy), task.UpdatedAt.UnixMilli(), nullText(task.Schedule), nullTime(task.Tick))
}

// stateValue is where the state stands among the settings.
const stateValue = 4

// ordering is what a task that is asked for has to do with others.
type ordering struct {
	waiting
	used bool // it has a lane, or names others
}

// orderingOf looks at what a spec has to do with others. added are the tasks before it in the same call.
func (t *tx) orderingOf(spec *jobs.Spec, added []Inserted) (ordering, error) {
	o := ordering{used: spec.Ordered()}
	if !o.used {
		return o, nil
	}
	after, err := withEarlier(spec.After, spec.Earlier, added)
	if err != nil {
		return o, err
	}
	afterAny, err := withEarlier(spec.AfterAny, spec.EarlierAny, added)
	if err == nil {
		o.waiting, err = t.waitsFor(after, afterAny)
	}
	return o, err
}

// insertOrdered adds a task whose start depends on others: on those it names, or on those of its lane.
func (t *tx) insertOrdered(task *jobs.Task, values []any, o ordering, now time.Time) (int64, error) {
	taken, err := t.laneTaken(task.Lane)
	if err != nil {
		return 0, err
	}
	waits := o.waits()
	state := jobs.Place(task.RunAt, now, waits, taken)
	var reason, text, finishedAt any
	if o.broken != "" {
		state, reason, text, finishedAt = jobs.Cancelled, string(jobs.ReasonDependency), o.broken, now.UnixMilli()
	}
	values[stateValue] = string(state)
	id, err := t.insert(insertOrdered, append(values, nullIDs(o.after), nullIDs(o.afterAny), nullText(task.Lane), waitsValue(state, waits), reason, text, finishedAt)...)
	if err == nil {
		err = t.keep(id, o.waiting)
	}
	switch {
	case err != nil:
	case state == jobs.Cancelled:
		err = t.ended([]end{{id: id, queue: task.Queue, state: state}}, now)
	case state == jobs.Blocked && !waits && t.used.limits: // laneTaken did not look
		err = t.freeLane(task.Lane, now)
	}
	return id, err
}

// replace makes an unfinished task the one that is asked for, unless it has started.
func (t *tx) replace(id int64, settings []any, input []byte, task jobs.Task, o ordering, now time.Time) (Inserted, error) {
	var was jobs.State
	var lane string
	var depended bool
	if err := t.scan(selectStanding, []any{id}, &was, &lane, &depended); err != nil {
		return Inserted{}, err
	}
	keepsLane := was == jobs.Pending && lane == task.Lane // who has the lane keeps it
	waits := o.waits() || o.broken != ""
	state := jobs.Place(task.RunAt, now, waits, task.Lane != "" && !keepsLane)
	settings[stateValue] = string(state)
	n, err := t.exec(replaceTask, append(settings, nullIDs(o.after), nullIDs(o.afterAny), nullText(task.Lane), waitsValue(state, waits),
		task.UpdatedAt.UnixMilli(), string(state), id)...)
	if err != nil || n == 0 {
		return Inserted{ID: id, Kept: true}, err
	}
	if _, err := t.exec(deleteInput, id); err != nil {
		return Inserted{}, err
	}
	if len(input) > 0 {
		if _, err := t.exec(insertInput, id, input); err != nil {
			return Inserted{}, err
		}
	}
	one := Inserted{ID: id, Replaced: true}
	if !o.used && !depended && lane == "" {
		return one, nil
	}
	if _, err := t.exec(deleteWaiting, id); err != nil {
		return one, err
	}
	for on := range o.open {
		if on >= id { // or two tasks could wait for each other
			return one, &jobs.Problem{Kind: jobs.ErrConflict, What: fmt.Sprintf("task %d cannot wait for task %d, which is not older", id, on),
				Why: []string{"its unique key is that of the new task, which would replace it", "nothing was changed"}, Try: "runner cancel " + fmt.Sprint(id)}
		}
	}
	if err := t.keep(id, o.waiting); err != nil {
		return one, err
	}
	var lanes laneSet
	lanes.add(lane)
	lanes.add(task.Lane)
	if o.broken != "" {
		var queue string
		ms := now.UnixMilli()
		if err := t.scan(cancelDependent, []any{o.broken, ms, ms, id}, &queue); err != nil {
			return one, err
		}
		if err := t.ended([]end{{id: id, queue: queue, state: jobs.Cancelled}}, now); err != nil {
			return one, err
		}
	}
	return one, t.freeLanes(lanes, now)
}

// waitsValue is the column waits of a task that is placed in state.
func waitsValue(state jobs.State, waits bool) any {
	if state != jobs.Blocked {
		return nil
	}
	return waits
}

// withEarlier adds the ids of tasks of the same call to those that are known.
func withEarlier(ids []int64, earlier []int, added []Inserted) ([]int64, error) {
	for _, i := range earlier {
		if i < 0 || i >= len(added) {
			return nil, &jobs.FieldError{Field: "after", Msg: fmt.Sprintf("%d is no earlier task of this call", i)}
		}
		ids = append(ids[:len(ids):len(ids)], added[i].ID)
	}
	return ids, nil
}

// Input returns what the command of a task reads on stdin.
func (d *DB) Input(ctx context.Context, id int64) ([]byte, error) {
	var data []byte
	err := d.read.GetContext(ctx, &data, selectInput, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return data, explain(err, d.path)
}
