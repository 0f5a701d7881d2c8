package db

import (
	"cmp"
	"context"
	"time"
)

// insertPause pauses queue [1] at time [2], for user [3], with reason [4] and
// until [5]. If the queue is paused already, only the end changes, and the
// reason if [4] isn't NULL.
var insertPause = command(`INSERT INTO {pauses} (queue, paused_at, paused_by, reason, until_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET reason = coalesce(excluded.reason, pauses.reason), until_at = excluded.until_at`)

// endPauses deletes the pauses that have ended at [1]; the table is small.
var (
	deletePause  = command(`DELETE FROM {pauses} WHERE queue = ?`)
	deletePauses = command(`DELETE FROM {pauses} WHERE queue <> '` + DeletionPause + `'`)
	endPauses    = command(`DELETE FROM {pauses} WHERE until_at <= ?`)
)

var selectPauses = query(`SELECT queue, paused_at, paused_by, reason, until_at FROM {pauses}`)

// AllQueues is the queue name that stands for the whole database. Its row has
// an empty name.
const AllQueues = "*"

func pauseKey(queue string) string {
	if queue == AllQueues {
		return ""
	}
	return queue
}

// DeletionPause is the key of a row in the table pauses. While it exists,
// workers delete no old tasks. No queue can have this name.
const DeletionPause = "-deletion"

// Pause is a pause of a queue, of all queues, or of deletions.
type Pause struct {
	At     time.Time // when the pause began; zero if there is no pause
	By     string    // name of the user who began the pause
	Reason string    // reason that the user gave for the pause; empty if there is none
	Until  time.Time // when the pause ends by itself; zero if it lasts until Resume
}

// EndsBefore reports whether a queue whose own pause is p stays paused by the
// other pause, that of the whole database.
func EndsBefore(p, other Pause) bool {
	return !p.Until.IsZero() && !other.At.IsZero() && (other.Until.IsZero() || other.Until.After(p.Until))
}

// Pause pauses queues, AllQueues, or with DeletionPause the deletion of old
// tasks. After Pause returns, no worker claims a task of these queues. If a
// queue is paused already, only the reason and the end change; a pause of
// deletions is replaced.
func (d *DB) Pause(ctx context.Context, queues []string, p Pause) error {
	return d.update(ctx, full, func(t *tx) error {
		if err := t.endPauses(p.At); err != nil {
			return err
		}

		for _, queue := range queues {
			if queue == DeletionPause { // its start says which clock has made it
				if err := t.run(deletePause, queue); err != nil {
					return err
				}
			}
			if err := t.run(insertPause, pauseKey(queue), p.At.UnixMilli(), p.By, nullText(p.Reason), nullTime(p.Until)); err != nil {
				return err
			}
		}

		return nil
	})
}

func (t *tx) endPauses(now time.Time) error {
	t.used.known = false
	return t.run(endPauses, now.UnixMilli())
}

// Resume ends the pauses of queues, and with DeletionPause that of deletions.
// AllQueues ends all pauses of queues and of the whole database.
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
	Until  number `db:"until_at"`
}

// Pauses returns every pause by the name of its queue, and that of deletions by
// DeletionPause. It leaves out those that have ended by now: without a worker,
// nobody has deleted their rows.
func (d *DB) Pauses(ctx context.Context, now time.Time) (map[string]Pause, error) {
	rows, err := readRows[pauseRow](ctx, d, selectPauses)
	pauses := make(map[string]Pause, len(rows))
	for _, r := range rows {
		if until := r.Until.time(); until.IsZero() || until.After(now) {
			pauses[cmp.Or(r.Queue, AllQueues)] = Pause{At: r.At.time(), By: r.By, Reason: string(r.Reason), Until: until}
		}
	}

	return pauses, err
}
