package harness

import (
	"context"
	_ "embed"
)

//go:embed history.sql
var historySQL string

// event is a row of the history that the triggers write.
type event struct {
	seq, at                   int64 // at is the wall clock in ms
	op                        string
	id                        int64
	oldState, state           string
	oldGeneration, generation int64
	oldWorker, worker         string
	oldLease, lease           int64
	oldAttempt, attempt       int
	oldLosses, losses         int
	maxAttempts, maxLosses    int
	priority                  int
	queue, job, label, key    string
	lane                      string
	waits                     bool // whether a blocked task waits for something besides its lane, such as a dependency
	reason, err, result       string
	pid                       int
	// on a server: number of the transaction, number of the oldest open
	// transaction, start of the transaction (wall clock in ms)
	xid, oldest, began int64
}

// events calls do for each event until it returns false.
func (db *database) events(ctx context.Context, do func(event) bool) error {
	rows, err := db.pool.QueryContext(ctx, `SELECT seq, at, op, coalesce(id, 0), coalesce(old_state, ''), coalesce(state, ''),
		coalesce(old_generation, 0), coalesce(generation, 0), coalesce(old_worker, ''), coalesce(worker, ''), coalesce(old_lease, 0),
		coalesce(lease, 0), coalesce(old_attempt, 0), coalesce(attempt, 0), coalesce(old_losses, 0), coalesce(losses, 0),
		coalesce(max_attempts, 0), coalesce(max_losses, 0), coalesce(priority, 0), coalesce(queue, ''),
		coalesce(job, ''), coalesce(label, ''), coalesce(unique_key, ''), coalesce(reason, ''), coalesce(error, ''),
		coalesce(result, ''), coalesce(pid, 0), coalesce(lane, ''), coalesce(waits, 1),
		coalesce(xid, 0), coalesce(oldest, 0), coalesce(began, 0) FROM selftest_history ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		var e event
		if err := rows.Scan(&e.seq, &e.at, &e.op, &e.id, &e.oldState, &e.state, &e.oldGeneration, &e.generation, &e.oldWorker, &e.worker,
			&e.oldLease, &e.lease, &e.oldAttempt, &e.attempt, &e.oldLosses, &e.losses, &e.maxAttempts, &e.maxLosses, &e.priority,
			&e.queue, &e.job, &e.label, &e.key, &e.reason, &e.err, &e.result, &e.pid, &e.lane, &e.waits,
			&e.xid, &e.oldest, &e.began); err != nil {
			return err
		}
		if !do(e) {
			break
		}
	}

	return rows.Err()
}

//go:embed history_server.sql
var serverHistorySQL string
