package db

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// selectEnded lists the last [2] attempts that ended at [1] or later, newest
// first. The attempt that completed a task has no row in the table attempts.
// Any other finished task has no worker here, as its attempts have rows.
// Indexes: attempts_finished, tasks_finished.
var selectEnded = query(`SELECT task_id, state, worker, started_at, finished_at FROM {attempts} WHERE finished_at >= ?1
UNION ALL SELECT id, state, CASE WHEN state = 'completed' THEN worker END, started_at, finished_at FROM {tasks} WHERE finished_at >= ?1
ORDER BY finished_at DESC LIMIT 0 + ?2`)

// selectAtWorkers lists up to [1] running tasks. Index: tasks_running.
var selectAtWorkers = query(`SELECT id AS task_id, state, worker, started_at, NULL AS finished_at FROM {tasks} WHERE state = 'running'
ORDER BY worker LIMIT 0 + ?`)

// selectWorkerNames returns the workers with the numbers in the JSON array [1].
// Index: primary key.
var selectWorkerNames = query(`SELECT number, id, name, slots, started_at, ended_at FROM {workers}
WHERE number IN (SELECT CAST(value AS bigint) FROM {json_each}) ORDER BY number`)

// Run is an attempt that has ended, or that runs.
type Run struct {
	TaskID     int64
	State      jobs.State // state of the attempt: Running, or a state as in Attempt
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

// RunsByWorker returns running attempts and attempts that ended since a given
// time, at most limit of each, grouped by worker. Of the ended ones it returns
// the last, those since from. The attempts of deleted tasks are always missing.
func (d *DB) RunsByWorker(ctx context.Context, since time.Time, limit int) (workers []WorkerRuns, from time.Time, err error) {
	type row struct {
		TaskID     int64      `db:"task_id"`
		State      jobs.State `db:"state"`
		Worker     number     `db:"worker"`
		StartedAt  number     `db:"started_at"`
		FinishedAt number     `db:"finished_at"`
	}
	ended, err := readRows[row](ctx, d, selectEnded, since.UnixMilli(), limit)
	if err != nil {
		return nil, since, err
	}

	running, err := readRows[row](ctx, d, selectAtWorkers, limit)
	if err != nil {
		return nil, since, err
	}

	if from = since; len(ended) == limit {
		from = ended[limit-1].FinishedAt.time()
	}

	byWorker := map[int64][]Run{}
	for _, r := range append(running, ended...) {
		if r.Worker != 0 && r.StartedAt != 0 {
			byWorker[int64(r.Worker)] = append(byWorker[int64(r.Worker)], Run{TaskID: r.TaskID, State: r.State,
				StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time()})
		}
	}

	workers, err = d.workersOf(ctx, byWorker)
	return workers, from, err
}

// workersOf returns the workers of the given runs, whose keys are the numbers
// of the workers.
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
	return readAs(ctx, d, func(w *worker) WorkerRuns {
		list := runs[w.Number]
		slices.SortFunc(list, func(a, b Run) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.TaskID, b.TaskID)) })
		return WorkerRuns{ID: w.ID, Name: w.Name, Slots: w.Slots, StartedAt: w.StartedAt.time(), EndedAt: w.EndedAt.time(), Runs: list}
	}, selectWorkerNames, jsonText(slices.Collect(maps.Keys(runs))))
}
