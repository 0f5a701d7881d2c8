package db

import (
	"context"

	"example.com/runner/jobs"
)

// previousAmong is the number of ids, just below the id of the given task, that a call of PreviousRuns searches. This limits the cost of
// a call.
const previousAmong = 5000

// These queries find tasks of job [3] that have started, newest first. They search the ids from [2] to [1], without [1] itself, by the
// primary key. The last argument is the maximum number of tasks. previousJobs is for functions, and previousLabels is for commands with the
// label [4]. previousArgs is for commands without a label. [5] is the arguments of the command, and [4] is their length in bytes. The
// engine compares the lengths first, so it need not read the arguments of most other tasks.
var (
	previousJobs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? ORDER BY id DESC
		LIMIT ?`)
	previousLabels = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label = ?
		ORDER BY id DESC LIMIT ?`)
	previousArgs = query(`SELECT id FROM {tasks} WHERE id < ? AND id >= ? AND started_at IS NOT NULL AND job = ? AND label IS NULL
AND octet_length(args) = ? AND args = ? ORDER BY id DESC LIMIT ?`)
)

// previousTicks finds at most [3] tasks of schedule [1] that have started and whose ticks are before [2], the latest first. Index:
// tasks_tick.
var previousTicks = query(`SELECT id FROM {tasks} WHERE schedule = ? AND tick < ? AND started_at IS NOT NULL ORDER BY tick DESC LIMIT ?`)

// selectFailedBefore lists the tasks of the JSON array [1] that have failed for
// good and were then retried by a user. Such a retry begins again with attempt 1,
// so an attempt with the same or a lower number follows the failed one.
var selectFailedBefore = query(`SELECT DISTINCT ended.task_id FROM {attempts} AS ended JOIN {tasks} ON tasks.id = ended.task_id
WHERE ended.task_id IN (SELECT CAST(value AS bigint) FROM {json_each}) AND ended.state = 'failed' AND ended.counted = 1
	AND (tasks.attempt < ended.attempt
		OR tasks.attempt = ended.attempt AND (tasks.state = 'running' OR tasks.state = 'completed')
		OR EXISTS (SELECT 1 FROM {attempts} AS later WHERE later.task_id = ended.task_id
			AND later.generation_id > ended.generation_id AND later.counted = 1 AND later.attempt <= ended.attempt))`)

// FailedBefore returns those of the tasks that have failed for good and were
// then retried, whatever has become of them since.
func (d *DB) FailedBefore(ctx context.Context, ids []int64) (map[int64]bool, error) {
	list, err := readRows[int64](ctx, d, selectFailedBefore, jsonText(ids))
	failed := make(map[int64]bool, len(list))
	for _, id := range list {
		failed[id] = true
	}
	return failed, err
}

// PreviousRuns returns the ids of up to n earlier tasks that ran the same function or command as task t, newest first. It leaves out tasks
// that have not started. For a task of a schedule it finds all earlier tasks of that schedule. For another task it searches only the 5000
// ids before the id of t.
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
