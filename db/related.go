package db

import (
	"context"
	"slices"

	"example.com/runner/jobs"
)

// These statements are for a drawing. selectBefore lists the tasks on which
// those in the JSON array [1] depend, and selectBehind those that depend on
// them: up to [2] rows, with a task possibly several times. selectAmong lists
// the first [3] dependencies of tasks in the array [1] on tasks in the array
// [2]. Indexes: primary key, dependencies_on.
var (
	selectBefore = query(`SELECT on_id FROM {json_each} {join_in_order} {dependencies} ON task_id = CAST(value AS bigint) LIMIT 0 + ?`)
	selectBehind = query(`SELECT task_id FROM {json_each} {join_in_order} {dependencies} ON on_id = CAST(value AS bigint) LIMIT 0 + ?`)
	selectAmong  = query(`SELECT task_id, on_id, any_outcome <> 0 AS any_outcome FROM {dependencies}
WHERE task_id IN (SELECT CAST(value AS bigint) FROM {json_each}) AND on_id IN (SELECT CAST(value AS bigint) FROM {json_each})
ORDER BY task_id, on_id LIMIT 0 + ?`)
)

// selectNames returns what users recognize the tasks in the JSON array [1] by,
// without long arguments. Index: primary key.
var selectNames = query(`SELECT id, state, job, label, CASE WHEN octet_length(args) <= 1000 THEN args END AS args FROM {tasks}
WHERE id IN (SELECT CAST(value AS bigint) FROM {json_each})`)

// DependencyLink is a dependency of Task on another task.
type DependencyLink struct {
	Task int64 `db:"task_id"`
	On   int64 `db:"on_id"`
	Any  bool  `db:"any_outcome"` // whether any outcome satisfies the dependency
}

// rowsPerTask limits the rows that Related reads for each task that it returns.
const rowsPerTask = 10

// Related returns the tasks that a task depends on, directly or through others,
// and those that depend on it: first those with a direct dependency, then those
// with one task in between, and so on. Each result has only the nearest tasks,
// at most limit. If too many have the same distance, it has an arbitrary part
// of them, because all would have to be read for a sort. more says that there
// may be others.
func (d *DB) Related(ctx context.Context, id int64, limit int) (before, behind [][]int64, more bool, err error) {
	before, cut, err := d.byDistance(ctx, selectBefore, id, limit)
	if err == nil {
		behind, more, err = d.byDistance(ctx, selectBehind, id, limit)
	}
	return before, behind, more || cut, err
}

// byDistance groups the tasks around a task by their distance. The statement s
// finds the direct neighbours: it's selectBefore or selectBehind.
func (d *DB) byDistance(ctx context.Context, s *statement, id int64, limit int) (list [][]int64, more bool, err error) {
	seen := map[int64]bool{id: true}
	for last := []int64{id}; ; list = append(list, last) {
		if len(seen) > limit+1 {
			return list, true, nil
		}

		found, err := readRows[int64](ctx, d, s, jsonText(last), limit*rowsPerTask)
		if err != nil {
			return nil, false, err
		}

		more = more || len(found) == limit*rowsPerTask
		slices.Sort(found)
		last = nil
		for _, other := range found {
			if !seen[other] {
				seen[other] = true
				last = append(last, other)
			}
		}

		if excess := len(seen) - 1 - limit; excess > 0 {
			last, more = last[:len(last)-excess], true
		}
		if len(last) == 0 {
			return list, more, nil
		}
	}
}

// DependenciesAmong returns at most limit dependencies between tasks, by task.
func (d *DB) DependenciesAmong(ctx context.Context, ids []int64, limit int) ([]DependencyLink, error) {
	list := jsonText(ids)
	return readRows[DependencyLink](ctx, d, selectAmong, list, list, limit)
}

// Names returns tasks by id, with ID, State, Job and Label, and Args of at most
// 1000 bytes.
func (d *DB) Names(ctx context.Context, ids []int64) (map[int64]jobs.Task, error) {
	type name struct {
		ID    int64      `db:"id"`
		State jobs.State `db:"state"`
		Job   string     `db:"job"`
		Label text       `db:"label"`
		Args  text       `db:"args"`
	}
	rows, err := readRows[name](ctx, d, selectNames, jsonText(ids))
	named := make(map[int64]jobs.Task, len(rows))
	for _, r := range rows {
		t := jobs.Task{ID: r.ID, State: r.State}
		t.Job, t.Label, t.Args = r.Job, string(r.Label), r.Args.json()
		named[r.ID] = t
	}

	return named, err
}
