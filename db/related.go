package db

import (
	"context"
	"slices"

	"example.com/runner/jobs"
)

// These statements read the dependencies around a task, for a drawing. selectBefore lists the tasks on which the tasks in the JSON array
// [1] depend. selectBehind lists the tasks that depend on the tasks in this array. Both return at most [2] rows, and can return a task
// several times. selectAmong lists the first [3] dependencies of tasks in the array [1] on tasks in the array [2]. Indexes: primary key,
// dependencies_on.
var (
	selectBefore = query(`SELECT on_id FROM {json_each} {join_in_order} {dependencies} ON task_id = CAST(value AS bigint) LIMIT 0 + ?`)
	selectBehind = query(`SELECT task_id FROM {json_each} {join_in_order} {dependencies} ON on_id = CAST(value AS bigint) LIMIT 0 + ?`)
	selectAmong  = query(`SELECT task_id, on_id, any_outcome <> 0 AS any_outcome FROM {dependencies}
WHERE task_id IN (SELECT CAST(value AS bigint) FROM {json_each}) AND on_id IN (SELECT CAST(value AS bigint) FROM {json_each})
ORDER BY task_id, on_id LIMIT 0 + ?`)
)

// selectNames returns the columns by which users recognize the tasks in the JSON array [1]. It leaves out long arguments. Index: primary
// key.
var selectNames = query(`SELECT id, state, job, label, CASE WHEN octet_length(args) <= 1000 THEN args END AS args FROM {tasks}
WHERE id IN (SELECT CAST(value AS bigint) FROM {json_each})`)

// DependencyLink is a dependency: the task with the id Task depends on the task with the id On.
type DependencyLink struct {
	Task int64 `db:"task_id"`
	On   int64 `db:"on_id"`
	Any  bool  `db:"any_outcome"` // whether any outcome satisfies the dependency
}

// rowsPerTask limits the statements of Related: to return n tasks, a statement reads at most n * rowsPerTask rows.
const rowsPerTask = 10

// Related returns the ids of the tasks that a task depends on, directly or through other tasks, and of the tasks that depend on it. The
// first element of each result has the tasks with a direct dependency, the second element has the tasks with one task in between, and so
// on. Each result has only the nearest tasks, and the parameter "most" limits their number. If too many tasks have the same distance,
// Related returns an arbitrary part of them, because it would have to read all of them to sort them. The result "more" reports whether
// there may be further tasks.
func (d *DB) Related(ctx context.Context, id int64, most int) (before, behind [][]int64, more bool, err error) {
	before, cut, err := d.byDistance(ctx, selectBefore, id, most)
	if err == nil {
		behind, more, err = d.byDistance(ctx, selectBehind, id, most)
	}
	return before, behind, more || cut, err
}

// byDistance returns the tasks around the task with the given id, grouped by the number of dependencies between them and this task. The
// statement s finds the direct neighbours of tasks: it is selectBefore or selectBehind.
func (d *DB) byDistance(ctx context.Context, s *statement, id int64, most int) (list [][]int64, more bool, err error) {
	seen := map[int64]bool{id: true}
	for last := []int64{id}; ; list = append(list, last) {
		if len(seen) > most+1 {
			return list, true, nil
		}
		found, err := readRows[int64](ctx, d, s, jsonText(last), most*rowsPerTask)
		if err != nil {
			return nil, false, err
		}
		more = more || len(found) == most*rowsPerTask
		slices.Sort(found)
		last = nil
		for _, other := range found {
			if !seen[other] {
				seen[other] = true
				last = append(last, other)
			}
		}
		if excess := len(seen) - 1 - most; excess > 0 {
			last, more = last[:len(last)-excess], true
		}
		if len(last) == 0 {
			return list, more, nil
		}
	}
}

// DependenciesAmong returns the dependencies between the tasks with the given ids, by task. The parameter "most" limits their
// number.
func (d *DB) DependenciesAmong(ctx context.Context, ids []int64, most int) ([]DependencyLink, error) {
	list := jsonText(ids)
	return readRows[DependencyLink](ctx, d, selectAmong, list, list, most)
}

// Names returns the tasks with the given ids, by id. It sets the fields ID, State, Job and Label, and Args if they have at most 1000 bytes.
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
