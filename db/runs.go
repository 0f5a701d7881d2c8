package db

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// These statements read which attempts ran last, newest first. selectEnded reads the table attempts: it lists up to [2] attempts that ended
// at [1] or later. An attempt that completed its task has no row in this table, so selectDone lists up to [2] finished tasks that ended at
// [1] or later. selectAtWorkers lists up to [1] running tasks. Indexes: attempts_finished, tasks_finished, tasks_running.
var (
	selectEnded = query(`SELECT task_id, state, worker, started_at, finished_at FROM {attempts} WHERE finished_at >= ?
ORDER BY finished_at DESC LIMIT 0 + ?`)
	selectDone = query(`SELECT id AS task_id, state, worker, started_at, finished_at FROM {tasks} WHERE finished_at >= ?
ORDER BY finished_at DESC LIMIT 0 + ?`)
	selectAtWorkers = query(`SELECT id AS task_id, state, worker, started_at, NULL AS finished_at FROM {tasks} WHERE state = 'running'
ORDER BY worker LIMIT 0 + ?`)
)

// selectWorkerNames returns the workers with the numbers in the JSON array [1]. Index: primary key.
var selectWorkerNames = query(`SELECT number, id, name, slots, started_at, ended_at FROM {workers}
WHERE number IN (SELECT CAST(value AS bigint) FROM {json_each}) ORDER BY number`)

// Run is an attempt that has ended, or that runs.
type Run struct {
	TaskID     int64
	State      jobs.State // state of the attempt: Running, or a state as in jobs.Attempt
	StartedAt  time.Time
	FinishedAt time.Time // zero while the attempt runs
}

// WorkerRuns is a worker with the attempts that it ran.
type WorkerRuns struct {
	ID, Name  string
	Slots     int
	StartedAt time.Time
	EndedAt   time.Time // zero for a worker that has not ended
	Runs      []Run     // ordered by the time of their start
}

// RunsByWorker returns the running attempts, and the attempts that ended at or after the time in the parameter "since", grouped by worker.
// It reads them with three statements. The parameter "most" is the maximum number of rows of each statement. If a statement about ended
// attempts reaches this maximum, the list has only the attempts that ended at or after the time in the result "from". Otherwise this time
// is the same as "since". The attempts of deleted tasks are always missing.
func (d *DB) RunsByWorker(ctx context.Context, since time.Time, most int) (workers []WorkerRuns, from time.Time, err error) {
	type row struct {
		TaskID     int64      `db:"task_id"`
		State      jobs.State `db:"state"`
		Worker     number     `db:"worker"`
		StartedAt  number     `db:"started_at"`
		FinishedAt number     `db:"finished_at"`
	}
	from = since
	byWorker := map[int64][]Run{}
	for _, s := range []*statement{selectEnded, selectDone, selectAtWorkers} {
		args := []any{since.UnixMilli(), most}
		if s == selectAtWorkers {
			args = args[1:]
		}
		rows, err := readRows[row](ctx, d, s, args...)
		if err != nil {
			return nil, from, err
		}
		if last := len(rows) - 1; s != selectAtWorkers && len(rows) == most && rows[last].FinishedAt.time().After(from) {
			from = rows[last].FinishedAt.time()
		}
		for _, r := range rows {
			if r.Worker == 0 || r.StartedAt == 0 || s == selectDone && r.State != jobs.Completed {
				continue
			}
			byWorker[int64(r.Worker)] = append(byWorker[int64(r.Worker)], Run{TaskID: r.TaskID, State: r.State,
				StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time()})
		}
	}
	for number, runs := range byWorker {
		byWorker[number] = slices.DeleteFunc(runs, func(r Run) bool { return !r.FinishedAt.IsZero() && r.FinishedAt.Before(from) })
	}
	workers, err = d.workersOf(ctx, byWorker)
	return workers, from, err
}

// workersOf returns the workers of the given runs. The parameter "runs" has the numbers of the workers as keys.
func (d *DB) workersOf(ctx context.Context, runs map[int64][]Run) ([]WorkerRuns, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	type worker struct {
		Number    int64  `db:"number"`
		ID        string `db:"id"`
		Name      string `db:"name"`
		Slots     int    `db:"slots"`
		StartedAt number `db:"started_at"`
		EndedAt   number `db:"ended_at"`
	}
	numbers := make([]int64, 0, len(runs))
	for n := range runs {
		numbers = append(numbers, n)
	}
	return readAs(ctx, d, func(w *worker) WorkerRuns {
		list := runs[w.Number]
		slices.SortFunc(list, func(a, b Run) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.TaskID, b.TaskID)) })
		return WorkerRuns{ID: w.ID, Name: w.Name, Slots: w.Slots, StartedAt: w.StartedAt.time(), EndedAt: w.EndedAt.time(), Runs: list}
	}, selectWorkerNames, jsonText(numbers))
}
