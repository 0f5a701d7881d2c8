package db

import (
	"context"
	"sync"

	"example.com/runner/jobs"
)

// addTotal adds [4] to the attempts of queue [1] and job [2] that ended as [3] says.
var addTotal = command(`INSERT INTO {totals} (queue, job, result, n) VALUES (?, ?, ?, ?)
ON CONFLICT (queue, job, result) DO UPDATE SET n = totals.n + excluded.n`)

// selectTotals lists all totals: a row for each queue, job and result there was.
var selectTotals = query(`SELECT queue, job, result, n FROM {totals}`)

// Total is how many attempts of a job in a queue ended in one way, ever.
type Total struct {
	Queue  string `db:"queue"`
	Job    string `db:"job"`
	Result string `db:"result"` // completed, or the reason
	N      int64  `db:"n"`
}

// attemptCounter counts the attempts that ended since it was last written. Writing it with each of them would cost a lone finish
// some percent.
type attemptCounter struct {
	mu    sync.Mutex
	ended map[Total]int64 // N of the key is 0
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

// finished counts what a turn has ended.
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

// write writes the attemptCounter by update, and then does the rest of that transaction; what could not be written is kept for the
// next time.
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

// Totals returns how many attempts ended how, by queue and job.
func (d *DB) Totals(ctx context.Context) ([]Total, error) {
	return readRows[Total](ctx, d, selectTotals)
}
