package db

import (
	"context"
	"time"
)

// selectOld lists up to [3] tasks that ended from [1] on and before [2] and did not fail, with about how many bytes they take;
// selectOldFailed up to [2] failed ones that ended before [1]. Indexes: tasks_finished, tasks_failed.
var (
	selectOld = query(`SELECT id, finished_at, ` + taskBytes + ` AS bytes FROM {tasks} WHERE finished_at >= ? AND finished_at < ?
		AND state <> 'failed' ORDER BY finished_at LIMIT 0 + ?`)
	selectOldFailed = query(`SELECT id, finished_at, ` + taskBytes + ` AS bytes FROM {tasks} WHERE state = 'failed' AND finished_at < ?
		ORDER BY finished_at LIMIT 0 + ?`)
)

// taskBytes is about how many bytes a task takes.
const taskBytes = `1000 + coalesce(length(args), 0) + coalesce(length(result), 0) +
	(SELECT coalesce(sum(length(data)), 0) FROM {output} WHERE task_id = tasks.id) + ` + inputBytes

// pruneTask forgets task [1] if it still is finished, and since before [2].
var pruneTask = command(`DELETE FROM {tasks} WHERE id = ? AND finished_at < ?`)

// pruneWorkers forgets workers that gave their last sign of life before [1] and own nothing.
var pruneWorkers = command(`DELETE FROM {workers} WHERE beat_at < ? AND NOT EXISTS (SELECT 1 FROM {tasks} WHERE worker = workers.number
	AND state = 'running')`)

// sumUpHours adds the counters of the minutes before [1] to their hours; what is summed up and what is too old, from minute or hour [1]
// on backwards, is deleted.
var (
	sumUpHours = command(`INSERT INTO {counter_hours} (queue, state, hour, n) SELECT queue, state, minute / 60, sum(n) FROM {counters}
	WHERE minute < ? GROUP BY queue, state, minute / 60
ON CONFLICT (queue, state, hour) DO UPDATE SET n = counter_hours.n + excluded.n`)
	deleteMinutes = command(`DELETE FROM {counters} WHERE minute < ?`)
	deleteHours   = command(`DELETE FROM {counter_hours} WHERE hour < ?`)
)

const (
	pruneMost  = 500     // tasks in one transaction: others get their turn in between
	pruneBytes = 8 << 20 // and about so much of what belongs to them
)

// Prune says which finished tasks to forget. The zero time keeps all of a kind.
type Prune struct {
	From         time.Time // tasks that ended before it and did not fail were looked at already
	Before       time.Time // tasks that did not fail and ended before it
	FailedBefore time.Time // failed tasks that ended before it
}

// Pruned is what one Prune did.
type Pruned struct {
	Tasks int
	From  time.Time // of the next Prune, so that those that are kept for longer are not walked over again
	More  bool      // it left some
}

// Prune forgets finished tasks with all that belongs to them: one transaction of a bounded size, after which others have their turn.
// Several workers may do it at once.
func (d *DB) Prune(ctx context.Context, p Prune) (Pruned, error) {
	done := Pruned{From: p.From}
	type old struct {
		ID         int64  `db:"id"`
		FinishedAt number `db:"finished_at"`
		Bytes      int64  `db:"bytes"`
	}
	var list []old
	var err error
	if !p.Before.IsZero() {
		if list, err = readRows[old](ctx, d, selectOld, max(p.From.UnixMilli(), 0), p.Before.UnixMilli(), pruneMost); err != nil {
			return done, err
		}
	}
	ended := len(list)
	if !p.FailedBefore.IsZero() && ended < pruneMost {
		failed, err := readRows[old](ctx, d, selectOldFailed, p.FailedBefore.UnixMilli(), pruneMost-ended)
		if err != nil {
			return done, err
		}
		list = append(list, failed...)
	}
	done.More = len(list) == pruneMost
	left := int64(pruneBytes)
	for i := range list {
		if left -= list[i].Bytes; left < 0 && i > 0 {
			list, done.More = list[:i], true
			break
		}
	}
	switch {
	case len(list) < ended || ended == pruneMost:
		done.From = list[min(len(list), ended)-1].FinishedAt.time() // there may be more of this very moment
	case !p.Before.IsZero():
		done.From = p.Before
	}
	if len(list) == 0 {
		return done, nil
	}
	done.Tasks, err = updateAs(ctx, d, normal, func(t *tx) (pruned int, err error) {
		for i, task := range list {
			before := p.Before
			if i >= ended {
				before = p.FailedBefore
			}
			n, err := t.exec(pruneTask, task.ID, before.UnixMilli())
			if err == nil && n == 1 {
				pruned++
				err = t.forget(task.ID)
			}
			if err != nil {
				return 0, err
			}
		}
		return pruned, nil
	})
	return done, err
}

// PruneWorkers forgets workers of which nothing was heard since then.
func (d *DB) PruneWorkers(ctx context.Context, before time.Time) error {
	return d.update(ctx, normal, func(t *tx) error { return t.run(pruneWorkers, before.UnixMilli()) })
}

// RollUp sums up the counters of the minutes before a time by the hour, and forgets the hours before another.
func (d *DB) RollUp(ctx context.Context, minutes, hours time.Time) error {
	minute := minutes.Unix() / 3600 * 60 // whole hours only: the counters of one are in one place
	return d.update(ctx, normal, func(t *tx) error {
		if err := t.run(sumUpHours, minute); err != nil {
			return err
		}
		if err := t.run(deleteMinutes, minute); err != nil {
			return err
		}
		return t.run(deleteHours, hours.Unix()/3600)
	})
}

// Vacuum gives some of the file's free pages back to the filesystem and returns whether it has more left to give.
func (d *DB) Vacuum(ctx context.Context) (bool, error) {
	return updateAs(ctx, d, normal, func(t *tx) (bool, error) { return d.engine.Vacuum(t.ctx, t.w.conn) })
}
