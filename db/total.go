package db

import (
	"context"
	"sync"

	"example.com/runner/jobs"
)

var addTotal = command(`INSERT INTO {totals} (queue, job, result, n) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, job, result) DO UPDATE SET n = totals.n + excluded.n`)

var selectTotals = query(`SELECT queue, job, result, n FROM {totals}`)

// Total counts the attempts of one job in one queue that have ended with the
// same result.
type Total struct {
	Queue  string `db:"queue"`
	Job    string `db:"job"`
	Result string `db:"result"` // "completed", or the reason why the attempt ended in another way
	N      int64  `db:"n"`
}

// attemptCounter counts the attempts that ended since its last write. It writes
// many counts at once, because a write for each attempt would slow down its end
// by a few percent.
type attemptCounter struct {
	mu    sync.Mutex
	ended map[Total]int64 // in the keys, N is always 0
}

func (y *attemptCounter) add(task jobs.Task, reason jobs.Reason) {
	y.mu.Lock()
	defer y.mu.Unlock()

	if y.ended == nil {
		y.ended = map[Total]int64{}
	}
	result := string(reason)
	if result == "" {
		result = string(jobs.Completed)
	}
	y.ended[Total{Queue: task.Queue, Job: task.Job, Result: result}]++
}

func (y *attemptCounter) finished(list []Finish, done []Finished) {
	for i, f := range list {
		switch {
		case f.Release || done[i].Fenced:
		case done[i].InTx:
			y.add(f.Task, "")
		default:
			y.add(f.Task, f.Outcome.Reason)
		}
	}
}

// write adds the counts to the database in a transaction of update, which also
// does rest. If it fails, the counter keeps the counts for the next write.
func (y *attemptCounter) write(update func(func(*tx) error) error, rest func(*tx) error) error {
	y.mu.Lock()
	taken := y.ended
	y.ended = nil
	y.mu.Unlock()
	err := update(func(t *tx) error {
		for total, n := range taken {
			if err := t.run(addTotal, total.Queue, total.Job, total.Result, n); err != nil {
				return err
			}
		}
		return rest(t)
	})
	if err != nil && len(taken) > 0 {
		y.mu.Lock()
		defer y.mu.Unlock()
		for total, n := range y.ended {
			taken[total] += n
		}
		y.ended = taken
	}

	return err
}

// Totals returns the number of attempts by queue, job and result.
func (d *DB) Totals(ctx context.Context) ([]Total, error) {
	return readRows[Total](ctx, d, selectTotals)
}
