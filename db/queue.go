package db

import (
	"context"
	"time"
)

// insertPause pauses queue [1] since [2], by [3], because of [4]. A pause that is there stays as it is, but for a new reason.
var insertPause = command(`INSERT INTO {pauses} (queue, paused_at, paused_by, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET reason = coalesce(excluded.reason, pauses.reason)`)

// deletePause ends the pause of queue [1]; deletePauses ends those of all queues.
var (
	deletePause  = command(`DELETE FROM {pauses} WHERE queue = ?`)
	deletePauses = command(`DELETE FROM {pauses} WHERE queue <> '` + DeletionPause + `'`)
)

var selectPauses = query(`SELECT queue, paused_at, paused_by, reason FROM {pauses}`)

// AllQueues stands for the whole database where the name of a queue is asked for.
const AllQueues = ""

// DeletionPause is the key of the pause of deletions in the table pauses. No queue has such a name.
const DeletionPause = "-deletion"

// setDeletionPause begins or replaces the pause of deletions: since [1], by [2], because of [3]. endDeletionPause ends the pause if it
// began at [1], or in any case if [1] is 0.
var (
	setDeletionPause = command(`INSERT INTO {pauses} (queue, paused_at, paused_by, reason) VALUES ('` + DeletionPause + `', ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason`)
	endDeletionPause = command(`DELETE FROM {pauses} WHERE queue = '` + DeletionPause + `' AND (paused_at = ?1 OR ?1 = 0)`)
)

// Pause says since when, by whom and why no task of a queue is started.
type Pause struct {
	At     time.Time
	By     string
	Reason string // empty: nobody said
}

// Pause pauses queues (or AllQueues). When it returns, no worker claims another task of them. A queue that is paused stays so.
func (d *DB) Pause(ctx context.Context, queues []string, p Pause) error {
	return d.update(ctx, full, func(t *tx) error {
		t.used.known = false
		for _, queue := range queues {
			if err := t.run(insertPause, queue, p.At.UnixMilli(), p.By, nullText(p.Reason)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Resume ends the pauses of queues; AllQueues ends every pause.
func (d *DB) Resume(ctx context.Context, queues []string) error {
	return d.update(ctx, full, func(t *tx) error {
		t.used.known = false
		for _, queue := range queues {
			text, args := deletePause, []any{queue}
			if queue == AllQueues {
				text, args = deletePauses, nil
			}
			if err := t.run(text, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

type pauseRow struct {
	Queue  string `db:"queue"`
	At     number `db:"paused_at"`
	By     string `db:"paused_by"`
	Reason text   `db:"reason"`
}

// Pauses returns every pause by the name of its queue, and that of deletions by DeletionPause.
func (d *DB) Pauses(ctx context.Context) (map[string]Pause, error) {
	rows, err := readRows[pauseRow](ctx, d, selectPauses)
	pauses := make(map[string]Pause, len(rows))
	for _, r := range rows {
		pauses[r.Queue] = Pause{At: r.At.time(), By: r.By, Reason: string(r.Reason)}
	}
	return pauses, err
}

// PauseDeletion notes that nobody may delete old tasks from p.At on. It is on the disk when it returns.
func (d *DB) PauseDeletion(ctx context.Context, p Pause) error {
	return d.update(ctx, full, func(t *tx) error {
		t.used.known = false
		return t.run(setDeletionPause, p.At.UnixMilli(), p.By, nullText(p.Reason))
	})
}

// PauseOfDeletion returns the pause of deletions; the zero Pause: there is none.
func (d *DB) PauseOfDeletion(ctx context.Context) (Pause, error) {
	pauses, err := d.Pauses(ctx)
	return pauses[DeletionPause], err
}

// ResumeDeletion ends the pause of deletions that began at a time, or whichever there is if the time is zero.
func (d *DB) ResumeDeletion(ctx context.Context, began time.Time) error {
	at := int64(0)
	if !began.IsZero() {
		at = began.UnixMilli()
	}
	return d.update(ctx, full, func(t *tx) error {
		t.used.known = false
		return t.run(endDeletionPause, at)
	})
}
