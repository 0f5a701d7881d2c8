package db

import (
	"context"

	"example.com/runner/jobs"
)

// previousAmong is the number of ids before the id of a task that PreviousRuns searches. It limits the cost of a call.
const previousAmong = 5000

// These queries find the last tasks before task [1], from id [2] on, that have started and ran the same job [3]. The last argument is
// their maximum number. previousJobs is for functions, previousLabels for commands with the label [4]. previousArgs is for commands
// without a label: their argv is [5] and has [4] bytes. The condition on the length saves the engine from reading most other argvs. All
// use the primary key.
var (
	previousJobs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? ORDER BY id DESC
		LIMIT ?`)
	previousLabels = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label = ?
		ORDER BY id DESC LIMIT ?`)
	previousArgs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label IS NULL
AND octet_length(args) = ? AND args = ? ORDER BY id DESC LIMIT ?`)
)

// previousTicks finds the last [3] tasks of schedule [1] before tick [2] that have started. Index: tasks_tick.
var previousTicks = query(`SELECT id FROM {tasks} WHERE schedule = ? AND tick < ? AND started_at IS NOT NULL ORDER BY tick DESC LIMIT ?`)

// PreviousRuns returns the ids of up to n tasks before a task that have started and ran the same function or command, newest first. It
// finds the tasks of a schedule however old they are. It finds other tasks only among the last 5000 ids.
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
