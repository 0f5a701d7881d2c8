package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/jobs"
)

// insertStep stores step [3] of the attempt that claimed task [1] as generation
// [2], if that claim is still running. It's idempotent: a caller can repeat it
// after an error, even if its transaction was committed.
var insertStep = command(`INSERT INTO {steps} (task_id, generation_id, seq, name, value, wake_at, at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM {tasks} WHERE id = ?1 AND generation_id = ?2 AND state = 'running')
ON CONFLICT (task_id, seq) DO UPDATE SET generation_id = excluded.generation_id, name = excluded.name, value = excluded.value,
	wake_at = excluded.wake_at, at = excluded.at`)

var selectSteps = query(`SELECT generation_id, name, value, wake_at, at FROM {steps} WHERE task_id = ? ORDER BY seq`)

var deleteSteps = command(`DELETE FROM {steps} WHERE task_id = ?`)

// Step is the record of a step that has ended, or of a sleep. A later attempt
// of the task does not run the step again.
type Step struct {
	Name         string
	GenerationID int64           // generation of the task in the attempt that ran the step
	Value        json.RawMessage // return value; nil for a sleep
	WakeAt       time.Time       // end of a sleep; zero for a step
	At           time.Time       // when the step ended, or when the sleep began
}

// Slept reports whether the record is of a sleep.
func (s Step) Slept() bool { return !s.WakeAt.IsZero() }

// AddStep stores step seq, from 1, of a running attempt. The step is durable
// when AddStep returns, or with outer, a transaction of the caller, when that
// is committed. AddStep returns jobs.ErrLost if the attempt no longer owns its
// task.
func (w *Worker) AddStep(ctx context.Context, outer *sql.Tx, claim ClaimID, seq int, step Step) error {
	add := func(t *tx) error {
		n, err := t.exec(insertStep, claim.ID, claim.GenerationID, int64(seq), step.Name, nullText(step.Value), nullTime(step.WakeAt),
			step.At.UnixMilli())
		if err == nil && n == 0 {
			err = fmt.Errorf("step %q of task %d: %w", step.Name, claim.ID, jobs.ErrLost)
		}
		return err
	}
	if outer == nil {
		return w.db.update(ctx, full, add)
	}

	t, err := w.db.joinTx(ctx, outer, engine.Finish)
	if err == nil {
		err = w.db.refused(add(t))
	}

	return err
}

type stepRow struct {
	GenerationID int64  `db:"generation_id"`
	Name         string `db:"name"`
	Value        text   `db:"value"`
	WakeAt       number `db:"wake_at"`
	At           number `db:"at"`
}

func (r *stepRow) step() Step {
	return Step{Name: r.Name, GenerationID: r.GenerationID, Value: r.Value.json(), WakeAt: r.WakeAt.time(), At: r.At.time()}
}

// Steps lists the finished steps and the sleeps of a task, in order.
func (d *DB) Steps(ctx context.Context, id int64) ([]Step, error) {
	return readAs(ctx, d, (*stepRow).step, selectSteps, id)
}

// StepsTx returns the steps of a task as the caller's transaction sees them. On
// a server it takes the write lock for the rest of that transaction.
func (d *DB) StepsTx(ctx context.Context, outer *sql.Tx, id int64) ([]Step, error) {
	t, err := d.joinTx(ctx, outer, engine.Finish)
	if err != nil {
		return nil, err
	}

	var rows []stepRow
	if err := t.list(&rows, selectSteps, id); err != nil {
		return nil, d.explain(err)
	}

	steps := make([]Step, len(rows))
	for i := range rows {
		steps[i] = rows[i].step()
	}

	return steps, nil
}
