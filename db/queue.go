package db

import (
	"context"
	"time"
)

// insertPause pauses queue [1] since [2], by [3], because of [4]. A pause that is there stays as it is, but for a new reason.
const insertPause = `INSERT INTO pauses (queue, paused_at, paused_by, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET reason = coalesce(excluded.reason, pauses.reason)`

// deletePause ends the pause of queue [1]; deletePauses ends all there are.
const (
	deletePause  = `DELETE FROM pauses WHERE queue = ?`
	deletePauses = `DELETE FROM pauses`
)

const selectPauses = `SELECT queue, paused_at, paused_by, reason FROM pauses`

// AllQueues stands for the whole database where the name of a queue is asked for.
const AllQueues = ""

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
			if _, err := t.exec(insertPause, queue, p.At.UnixMilli(), p.By, nullText(p.Reason)); err != nil {
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
			if _, err := t.exec(text, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pauses returns every pause by the name of its queue.
func (d *DB) Pauses(ctx context.Context) (map[string]Pause, error) {
	var rows []struct {
		Queue  string `db:"queue"`
		At     number `db:"paused_at"`
		By     string `db:"paused_by"`
		Reason text   `db:"reason"`
	}
	if err := d.read.SelectContext(ctx, &rows, selectPauses); err != nil {
		return nil, explain(err, d.path)
	}
	pauses := make(map[string]Pause, len(rows))
	for _, r := range rows {
		pauses[r.Queue] = Pause{At: r.At.time(), By: r.By, Reason: string(r.Reason)}
	}
	return pauses, nil
}
