package db

import (
	"context"
	"sync"

	"example.com/runner/jobs"
)

// addTotal adds [4] to the number of attempts of queue [1] and job [2] with result [3].
var addTotal = command(`INSERT INTO {totals} (queue, job, result, n) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, job, result) DO UPDATE SET n = totals.n + excluded.n`)

// selectTotals lists all totals: one row for each queue, job and result.
var selectTotals = query(`SELECT queue, job, result, n FROM {totals}`)

// Total counts the attempts of one job in one queue that have ended with the same result.
type Total struct {
	Queue  string `db:"queue"`
	Job    string `db:"job"`
	Result string `db:"result"` // "completed", or the reason why the attempt ended in another way
	N      int64  `db:"n"`
}

// attemptCounter counts the attempts that ended since its last write to the database. It writes many counts at once, because a write for
// each attempt would slow down the end of an attempt by a few percent.
type attemptCounter struct {
	mu    sync.Mutex
	ended map[Total]int64 // number of attempts by queue, job and result; in the keys, N is always 0
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

// finished counts the attempts that a call of Worker.Cycle has ended.
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

// write adds the counts to the totals in the database, in a transaction that the function "update" runs. The function "rest" does the other
// work of that transaction. If the transaction fails, the counter keeps the counts for the next write.
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
