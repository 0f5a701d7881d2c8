package db

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"example.com/runner/jobs"
)

// insertTask adds a task; its values are those of insertValues. Our own rows are born with generation 1 and their true state.
const insertTask = `INSERT INTO tasks (generation_id, job, args, label, queue, state, priority, unique_key, run_at, expires_at,
	max_attempts, max_losses, timeout, kill_after, backoff, backoff_delay, backoff_max, retry_on, output_limit, path, cwd, env,
	env_file, input_bytes, created_at, created_by, updated_at, schedule, tick)
VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// replaceTask gives task [26], which has not started, the settings [1] to [23] of another; time [24]; its new state again [25], as only
// a change of state is a new generation. No row: it has started.
const replaceTask = `UPDATE tasks SET job = ?, args = ?, label = ?, queue = ?, state = ?, priority = ?, unique_key = ?, run_at = ?,
	expires_at = ?, max_attempts = ?, max_losses = ?, timeout = ?, kill_after = ?, backoff = ?, backoff_delay = ?, backoff_max = ?,
	retry_on = ?, output_limit = ?, path = ?, cwd = ?, env = ?, env_file = ?, input_bytes = ?, updated_at = ?,
	generation_id = generation_id + (state <> ?)
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
	added := make([]Inserted, len(specs))
	err := d.update(ctx, full, func(t *tx) error {
		for i := range specs {
			var err error
			if added[i], err = t.insertSpec(&specs[i], now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// InsertSeq is Insert for any number of tasks. It holds the write lock while it asks specs for the next one, once for each; an
// error that comes from there undoes everything and is returned as it is.
func (d *DB) InsertSeq(ctx context.Context, specs iter.Seq2[jobs.Spec, error], now time.Time) ([]Inserted, error) {
	var added []Inserted
	err := d.updateAlone(ctx, full, func(t *tx) error {
		for spec, err := range specs {
			if err == nil {
				err = ctx.Err() // asked between rows: no statement is ever interrupted
			}
			if err != nil {
				return err
			}
			one, err := t.insertSpec(&spec, now)
			if err != nil {
				return err
			}
			added = append(added, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

func (t *tx) insertSpec(spec *jobs.Spec, now time.Time) (Inserted, error) {
	task := spec.Task(now)
	var env any
	if len(task.Env) > 0 {
		object, err := jobs.MarshalArgs(task.Env) // as Validate measures it
		if err != nil {
			return Inserted{}, err
		}
		env = string(object)
	}
	settings := []any{task.Job, nullText(task.Args), nullText(task.Label), task.Queue, string(task.State), int64(task.Priority),
		nullText(task.UniqueKey), task.RunAt.UnixMilli(), nullTime(task.ExpiresAt), nullNumber(task.MaxAttempts), int64(task.MaxLosses),
		nullNumber(millis(task.Timeout)), millis(task.KillAfter), string(task.Backoff.Strategy), millis(task.Backoff.Delay),
		millis(task.Backoff.Max), nullText(task.RetryOn), task.OutputLimit, nullText(task.Path), nullText(task.Cwd), env,
		nullText(task.EnvFile), task.InputBytes}
	if task.UniqueKey != "" {
		var id int64
		switch err := t.scan(selectUnique, []any{task.UniqueKey}, &id); {
		case err == nil && spec.Replace:
			return t.replace(id, settings, spec.Input, task)
		case err == nil:
			return Inserted{ID: id, Kept: true}, nil
		case !errors.Is(err, sql.ErrNoRows):
			return Inserted{}, err
		}
	}
	// The write lock is held: nobody can have taken the key since.
	id, err := t.insert(insertTask, append(settings, task.CreatedAt.UnixMilli(), nullText(task.CreatedBy), task.UpdatedAt.UnixMilli(),
		nullText(task.Schedule), nullTime(task.Tick))...)
	if err == nil && len(spec.Input) > 0 {
		_, err = t.exec(insertInput, id, spec.Input)
	}
	return Inserted{ID: id}, err
}

// replace makes an unfinished task the one that is asked for, unless it has started.
func (t *tx) replace(id int64, settings []any, input []byte, task jobs.Task) (Inserted, error) {
	n, err := t.exec(replaceTask, append(settings, task.UpdatedAt.UnixMilli(), string(task.State), id)...)
	if err != nil || n == 0 {
		return Inserted{ID: id, Kept: true}, err
	}
	if _, err := t.exec(deleteInput, id); err != nil {
		return Inserted{}, err
	}
	if len(input) > 0 {
		_, err = t.exec(insertInput, id, input)
	}
	return Inserted{ID: id, Replaced: true}, err
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
