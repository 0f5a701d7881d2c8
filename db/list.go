package db

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

const selectTasks = `SELECT ` + taskColumns + ` FROM ` + taskTables

// These statements read the tasks that a filter selects: {where} is its
// condition, and {order} an ORDER BY with a LIMIT. listSorted returns the rows
// of listTasks. It's faster if SQLite finds the tasks by an index and must then
// sort them by id: it sorts the ids alone, and reads the other columns only of
// the rows that it returns. partEnd skips [1] tasks and returns the place of
// the next one. listVersions lists what shows whether a task has changed.
// countSome stops at its last argument. Indexes of lists by time: tasks_failed,
// tasks_finished and tasks_due.
var (
	listTasks    = query(selectTasks + `{where}{order}`)
	listSorted   = query(selectTasks + ` WHERE tasks.id IN (SELECT tasks.id FROM {tasks}{where}{order}) ORDER BY tasks.id{direction}`)
	listIDs      = query(`SELECT tasks.id FROM {tasks}{where}{order}`)
	listVersions = query(`SELECT tasks.id, tasks.generation_id, tasks.updated_at, progress_reports.report AS progress
	FROM {tasks} ` + joinProgress + `{where}{order}`)
	partEnd    = query(`SELECT {by} AS at, tasks.id FROM {tasks}{where}{order} OFFSET 0 + ?`)
	countState = query(`SELECT state, count(*) AS n FROM {tasks}{where} GROUP BY state`)
	countSome  = query(`SELECT count(*) FROM (SELECT 1 FROM {tasks}{where} LIMIT 0 + ?) AS part`)
)

// selectAttempts lists the ended attempts of task [1], oldest first. They are
// few, so it sorts them without an index.
var selectAttempts = query(`SELECT ended.*, workers.id AS worker_id, workers.name AS worker_name
FROM (SELECT task_id AS id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome FROM {attempts}
	WHERE task_id = ?1
	UNION ALL SELECT id, generation_id - 1, attempt, state, 1, worker, started_at, finished_at, outcome FROM {tasks}
	WHERE id = ?1 AND state = 'completed' AND worker IS NOT NULL AND started_at IS NOT NULL) AS ended
LEFT JOIN {workers} ON workers.number = ended.worker ORDER BY generation_id`)

// countAhead counts the pending tasks of queue [1] and job [2] with a higher
// priority than [3], or with that priority and an id below [4]. It stops
// counting at [5]. Index: tasks_pending.
var countAhead = query(`SELECT count(*) FROM (
	SELECT 1 FROM {tasks} WHERE state = 'pending' AND queue = ?1 AND job = ?2 AND priority > ?3
	UNION ALL SELECT 1 FROM {tasks} WHERE state = 'pending' AND queue = ?1 AND job = ?2 AND {priority_3} AND id < ?4
	LIMIT 0 + ?5) AS part`)

// maxSorted is how many rows a list reads from partial indexes and then sorts.
// With more it's faster to read the table itself, newest row first.
const maxSorted = 10_000

// condition is a WHERE clause, built from constant templates, with its
// arguments.
type condition struct {
	terms []string
	args  []any
}

func (c *condition) add(term string, args ...any) {
	c.terms = append(c.terms, term)
	c.args = append(c.args, args...)
}

func (c *condition) template() string {
	if len(c.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.terms, " AND ")
}

// where turns a filter into SQL. Lists are passed as JSON, so that the text
// doesn't depend on their length. States are literals, because SQLite uses a
// partial index only if the query repeats its condition.
func where(f jobs.Filter) *condition {
	c := &condition{}
	texts := func(column string, values []string) { // "value->>0" reads the first element of an array, on SQLite and on PostgreSQL
		arrays := make([][1]string, len(values))
		for i, value := range values {
			arrays[i][0] = replaceNUL(value)
		}
		c.add(column+" IN (SELECT value->>0 FROM {json_each})", jsonText(arrays))
	}
	if f.IDs != nil {
		c.add("tasks.id IN (SELECT CAST(value AS bigint) FROM {json_each})", jsonText(f.IDs))
	}
	if len(f.States) > 0 {
		words := make([]string, len(f.States))
		for i, state := range f.States {
			if !slices.Contains(taskspec.AllStates(), state) {
				panic("db: no state " + string(state))
			}
			words[i] = "tasks.state = '" + string(state) + "'"
		}

		c.add("(" + strings.Join(words, " OR ") + ")")
	}
	if len(f.Queues) > 0 {
		texts("tasks.queue", f.Queues)
	}
	if len(f.Jobs) > 0 {
		texts("tasks.job", f.Jobs)
	}

	for _, is := range [][2]string{{"label", f.Label}, {"schedule", f.Schedule}, {"lane", f.Lane}} {
		if is[1] != "" {
			c.add("tasks."+is[0]+" = ?", is[1])
		}
	}

	if f.Batch != 0 {
		c.add("tasks.batch = ?", f.Batch)
	}
	if f.Paused {
		c.add("tasks.waits = 1 AND tasks.id IN (SELECT task_id FROM {task_pauses})")
	}
	if f.Worker != "" {
		c.add("tasks.worker IN (SELECT number FROM {workers} WHERE id = ? OR name = ?)", f.Worker, f.Worker)
	}
	if f.Match != "" {
		like := likeText(f.Match)
		c.add(`(tasks.label {like} ? ESCAPE '\' OR tasks.job {like} ? ESCAPE '\' OR tasks.args {like} ? ESCAPE '\'
			OR tasks.outcome ->> 'error' {like} ? ESCAPE '\' OR tasks.outcome ->> 'error_line' {like} ? ESCAPE '\')`,
			like, like, like, like, like)
	}
	if len(f.Metadata) > 0 {
		c.metadata(f.Metadata)
	}

	at := "coalesce(tasks.finished_at, tasks.created_at)"
	if selectsFinished(f) {
		at = "tasks.finished_at" // finished_at has an index
	}
	if !f.Since.IsZero() {
		c.add(at+" >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		c.add(at+" < ?", f.Until.UnixMilli())
	}
	if !f.FinishedBefore.IsZero() {
		c.add("tasks.finished_at < ?", f.FinishedBefore.UnixMilli())
	}
	if f.Before > 0 {
		c.add("tasks.id < ?", f.Before)
	}
	if f.After > 0 {
		c.add("tasks.id > ?", f.After)
	}

	return c
}

// metadata adds the condition that the metadata of a task has all of the texts.
func (c *condition) metadata(texts map[string]string) {
	keys := slices.Sorted(maps.Keys(texts))
	if len(keys) > taskspec.MaxMetadataKeys || slices.ContainsFunc(keys, func(key string) bool {
		return taskspec.ValidMetadataKey(key) != nil
	}) {
		// No task has so many keys or an invalid one. SQLite would take "$.a"
		// for a JSON path.
		c.add("1 = 0")
		return
	}

	for _, key := range keys {
		c.add("tasks.options -> 'metadata' ->> CAST(? AS text) = CAST(? AS text)", key, replaceNUL(texts[key]))
	}
}

// likeText is the pattern of LIKE that finds a text anywhere.
func likeText(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text) + "%"
}

// replaceNUL replaces NUL bytes: no name has one, and servers reject texts with
// one.
func replaceNUL(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

func selectsFinished(f jobs.Filter) bool {
	return len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s jobs.State) bool { return !s.Finished() })
}

// sorts reports whether the engine shall find the tasks of a list by an index
// and then sort them by id. The index is faster than the table, read from its
// end, if it has few rows.
func (d *DB) sorts(ctx context.Context, f jobs.Filter) (bool, error) {
	counted := jobs.Filter{}
	if selectsFinished(f) {
		counted.Since = f.Since
	}

	big := slices.Contains(f.States, jobs.Completed) || slices.Contains(f.States, jobs.Cancelled) // no index has these states
	if len(f.States) == 0 || f.IDs != nil || big && counted.Since.IsZero() {
		return f.Schedule != "", nil // the index of the tasks of a schedule is ordered by tick, and not by id
	}

	rows := 0
	for _, state := range f.States { // one by one, because only a condition with one state reads the index of that state
		counted.States = []jobs.State{state}
		n, err := d.CountUpTo(ctx, counted, maxSorted+1-rows)
		if err != nil {
			return false, err
		}
		if rows += n; rows > maxSorted {
			return f.Schedule != "", nil
		}
	}

	return true, nil
}

// List returns the tasks that a filter selects.
func (d *DB) List(ctx context.Context, f jobs.Filter) ([]jobs.Task, error) {
	tasks, _, err := d.ListPart(ctx, f, Part{Limit: f.Limit, Oldest: f.OldestFirst})
	return tasks, err
}

// ByID returns the tasks with the given ids that still exist, by id.
func (d *DB) ByID(ctx context.Context, ids []int64) (map[int64]jobs.Task, error) {
	if len(ids) == 0 {
		return nil, nil // a filter without ids selects all tasks
	}
	list, err := d.List(ctx, jobs.Filter{IDs: ids})
	tasks := make(map[int64]jobs.Task, len(list))
	for _, t := range list {
		tasks[t.ID] = t
	}

	return tasks, err
}

// IDs returns the ids of the tasks that List returns for the same filter.
func (d *DB) IDs(ctx context.Context, f jobs.Filter) (ids []int64, err error) {
	p := Part{Limit: f.Limit, Oldest: f.OldestFirst}
	if p.sorts, err = d.sorts(ctx, f); err != nil {
		return nil, err
	}
	s, args := p.statement(listIDs, f)
	return readRows[int64](ctx, d, s, args...)
}

// Version tells two versions of a task apart.
type Version struct {
	ID           int64
	GenerationID int64
	UpdatedAt    int64  // in Unix milliseconds
	Progress     string // JSON
}

// VersionOf returns the version of a task.
func VersionOf(t *jobs.Task) Version {
	return Version{t.ID, t.GenerationID, t.UpdatedAt.UnixMilli(), string(taskspec.ProgressJSON(t.Progress))}
}

// Versions returns the versions of the tasks that List returns for the same
// filter.
func (d *DB) Versions(ctx context.Context, f jobs.Filter) ([]Version, error) {
	type versionRow struct {
		ID           int64  `db:"id"`
		GenerationID int64  `db:"generation_id"`
		UpdatedAt    number `db:"updated_at"`
		Progress     text   `db:"progress"`
	}
	p := Part{Limit: f.Limit, Oldest: f.OldestFirst}
	sorts, err := d.sorts(ctx, f)
	if err != nil {
		return nil, err
	}

	p.sorts = sorts
	s, args := p.statement(listVersions, f)
	return readAs(ctx, d, func(r *versionRow) Version {
		return Version{r.ID, r.GenerationID, int64(r.UpdatedAt), string(taskspec.ProgressJSON(r.Progress.progress()))}
	}, s, args...)
}

// Count counts the tasks that a filter selects. It may scan the whole table.
func (d *DB) Count(ctx context.Context, f jobs.Filter) (int, error) {
	return d.CountUpTo(ctx, f, math.MaxInt32)
}

// CountByState counts the tasks that a filter selects by state. It may scan the
// whole table.
func (d *DB) CountByState(ctx context.Context, f jobs.Filter) (map[jobs.State]int, error) {
	type row struct {
		State jobs.State `db:"state"`
		N     int        `db:"n"`
	}
	c := where(f)
	rows, err := readRows[row](ctx, d, countState.With(sqltext.Parts{"where": c.template()}), c.args...)
	counts := map[jobs.State]int{}
	for _, r := range rows {
		counts[r.State] = r.N
	}

	return counts, err
}

// CountUpTo is Count, but it stops at limit. It may scan the whole table if it
// finds fewer tasks.
func (d *DB) CountUpTo(ctx context.Context, f jobs.Filter, limit int) (int, error) {
	c := where(f)
	return readValue[int](ctx, d, countSome.With(sqltext.Parts{"where": c.template()}), append(c.args, limit)...)
}

// QueuePosition counts, up to limit, the pending tasks of a task's queue that
// start before it.
func (d *DB) QueuePosition(ctx context.Context, task jobs.Task, limit int) (ahead int, err error) {
	for job := ""; ahead < limit; {
		next, err := readValue[text](ctx, d, nextJob, task.Queue, job)
		if err != nil || next == "" {
			return ahead, err
		}
		job = string(next)
		n, err := readValue[int](ctx, d, countAhead, task.Queue, job, task.Priority, task.ID, limit-ahead)
		if err != nil {
			return ahead, err
		}
		ahead += n
	}
	return ahead, nil
}

// Attempt is the record of one attempt that has ended.
type Attempt struct {
	TaskID          int64
	GenerationID    int64      // generation of the task in this attempt
	Number          int        // number of the attempt; a lost attempt and the one that repeats it have the same number
	State           jobs.State // one of jobs.Completed, Failed, Cancelled and Snoozed
	Reason          jobs.Reason
	Counted         bool // whether the attempt counts towards MaxAttempts; false if it was lost, snoozed or given back by its worker
	WorkerID        string
	Worker          string
	StartedAt       time.Time
	FinishedAt      time.Time
	Duration        time.Duration
	ExitCode        *int
	Signal          int
	Error           string
	ErrorLine       string // last line that the failed command printed; see jobs.Task.ErrorLine
	OutputBytes     int64
	OutputTruncated bool
	Usage           commands.Usage
	ChildrenKilled  int // number of left-over processes of the command that were killed when the command exited
	ChildrenLeft    int // number of left-over processes of the command that live on; see command.Settings.LeaveChildren
}

// Claim identifies the attempt among those of its task.
func (a Attempt) Claim() ClaimID { return ClaimID{ID: a.TaskID, GenerationID: a.GenerationID} }

// Attempts lists the ended attempts of a task, oldest first.
func (d *DB) Attempts(ctx context.Context, id int64) ([]Attempt, error) {
	type attemptRow struct {
		row
		Counted boolean `db:"counted"`
	}
	return readAs(ctx, d, func(r *attemptRow) Attempt {
		o := r.Outcome.outcome(r.StartedAt, r.FinishedAt)
		return Attempt{TaskID: r.ID, GenerationID: r.GenerationID, Number: r.Attempt, State: jobs.State(r.State),
			Reason: o.Reason, Counted: bool(r.Counted), WorkerID: string(r.WorkerID), Worker: string(r.WorkerName),
			StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(), Duration: o.duration(), ExitCode: o.ExitCode, Signal: o.Signal,
			Error: o.Error, OutputBytes: o.Output, OutputTruncated: o.Truncated,
			ErrorLine: o.ErrorLine, ChildrenKilled: o.Killed, ChildrenLeft: o.Left, Usage: o.usage()}
	}, selectAttempts, id)
}
