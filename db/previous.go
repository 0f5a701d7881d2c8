package db

import (
	"context"

	"example.com/runner/jobs"
)

// previousAmong is how many ids before a task's are looked at for runs of the same: it bounds what a look costs.
const previousAmong = 5000

// The last [n] tasks before task [1], from id [2] on, that have started and ran the same: of a function's job [3]; with the label [4] of a
// command; or of a command without one, with the argv [5], which is [4] bytes long, so that others are not read. Primary key.
var (
	previousJobs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? ORDER BY id DESC
		LIMIT ?`)
	previousLabels = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label = ?
		ORDER BY id DESC LIMIT ?`)
	previousArgs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label IS NULL
AND octet_length(args) = ? AND args = ? ORDER BY id DESC LIMIT ?`)
)

// previousTicks are the last [3] tasks of schedule [1] before tick [2] that have started. Index: tasks_tick.
var previousTicks = query(`SELECT id FROM {tasks} WHERE schedule = ? AND tick < ? AND started_at IS NOT NULL ORDER BY tick DESC LIMIT ?`)

// PreviousRuns returns the ids of up to n tasks before a task that have started and ran the same, the last first. Those of a
// schedule are found however long ago they were; others among the last few thousand tasks.
func (d *DB) PreviousRuns(ctx context.Context, t jobs.Task, n int) ([]int64, error) {
	text, args := previousJobs, []any{t.ID, t.ID - previousAmong, t.Job}
	switch {
	case t.Schedule != "" && !t.Tick.IsZero():
		text, args = previousTicks, []any{t.Schedule, t.Tick.UnixMilli()}
	case t.Job != jobs.CommandJob:
	case t.Label != "":
		text, args = previousLabels, append(args, t.Label)
	default:
		text, args = previousArgs, append(args, len(t.Args), string(t.Args))
	}
	return readRows[int64](ctx, d, text, append(args, n)...)
}
