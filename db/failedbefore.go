package db

import "context"

// selectFailedBefore lists the tasks of the JSON array [1] that have failed for
// good and were then retried by a user. Such a retry begins again with attempt
// 1, so an attempt with the same or a lower number follows the failed one.
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
