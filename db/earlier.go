package db

import (
	"context"

	"example.com/runner/jobs"
)

// earlierAmong is how many ids before a task's are looked at for runs of the same: it bounds what a look costs.
const earlierAmong = 5000

// The last [n] tasks before task [1], from id [2] on, that have started and ran the same: of a function's job [3]; with the label [4] of a
// command; or of a command without one, with the argv [5], which is [4] bytes long, so that others are not read. Primary key.
var (
	earlierJobs   = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? ORDER BY id DESC LIMIT ?`)
	earlierLabels = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label = ? ORDER BY id DESC LIMIT ?`)
	earlierArgs   = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label IS NULL
AND octet_length(args) = ? AND args = ? ORDER BY id DESC LIMIT ?`)
)

// earlierTicks are the last [3] tasks of schedule [1] before tick [2] that have started. Index: tasks_tick.
var earlierTicks = query(`SELECT id FROM {tasks} WHERE schedule = ? AND tick < ? AND started_at IS NOT NULL ORDER BY tick DESC LIMIT ?`)

// Earlier returns the ids of up to n tasks before a task that have started and ran the same, the last first. Those of a schedule are found
// however long ago they were; others among the last few thousand tasks.
func (d *DB) Earlier(ctx context.Context, t jobs.Task, n int) ([]int64, error) {
	text, args := earlierJobs, []any{t.ID, t.ID - earlierAmong, t.Job}
	switch {
	case t.Schedule != "" && !t.Tick.IsZero():
		text, args = earlierTicks, []any{t.Schedule, t.Tick.UnixMilli()}
	case t.Job != jobs.CommandJob:
	case t.Label != "":
		text, args = earlierLabels, append(args, t.Label)
	default:
		text, args = earlierArgs, append(args, len(t.Args), string(t.Args))
	}
	return readRows[int64](ctx, d, text, append(args, n)...)
}
