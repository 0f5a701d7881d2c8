package db

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// taskColumns are the columns of a task; the type row has a field for each.
//
// taskTables joins their tables. A cancel request and a progress report store
// the generation of their claim. When the claim ends, the generation of the
// task goes up by one, and by two if the claim was revoked before. So the joins
// also accept a request that is one or two generations older than the task, and
// a report that is one older.
const (
	taskColumns = `tasks.id, tasks.generation_id, tasks.state, tasks.queue, tasks.job,
	tasks.args, tasks.label, tasks.priority, tasks.run_at,
	tasks.expires_at, tasks.attempt, tasks.max_attempts, tasks.losses, tasks.max_losses,
	tasks.worker, tasks.lease_expires_at, tasks.unique_key, tasks.lane,
	tasks.schedule, tasks.tick, tasks.waits, tasks.parts, tasks.created_at, tasks.created_by,
	tasks.updated_at, tasks.started_at, tasks.finished_at,
	tasks.options, tasks.outcome, tasks.result, tasks.batch, workers.id AS worker_id, workers.name AS worker_name,
	cancel_requests.requested_at AS cancel_requested_at,
	cancel_requests.now AS cancel_now, cancel_requests.text AS cancel_text, progress_reports.report AS progress,
	` + inputBytes + ` AS input_bytes,
	CASE WHEN waits = 1 THEN (SELECT {json_list}(on_id) FROM {dependencies} WHERE task_id = tasks.id AND open = 1
	AND any_outcome = 0) END AS after_open,
	CASE WHEN waits = 1 THEN (SELECT {json_list}(on_id) FROM {dependencies} WHERE task_id = tasks.id AND open = 1
	AND any_outcome = 1) END AS after_any_open,
	CASE WHEN waits = 1 THEN (SELECT paused_at FROM {task_pauses} WHERE task_id = tasks.id) END AS paused_at,
	CASE WHEN waits = 1 THEN (SELECT paused_by FROM {task_pauses} WHERE task_id = tasks.id) END AS paused_by,
	CASE WHEN waits = 1 THEN (SELECT reason FROM {task_pauses} WHERE task_id = tasks.id) END AS paused_reason`
	taskTables = `{tasks} LEFT JOIN {workers} ON workers.number = tasks.worker
	LEFT JOIN {cancel_requests} ON cancel_requests.task_id = tasks.id
	AND cancel_requests.generation_id BETWEEN tasks.generation_id - 2 AND tasks.generation_id
		AND (tasks.state = 'running' OR finished_at IS NOT NULL)
	` + joinProgress
	joinProgress = `LEFT JOIN {progress_reports} ON progress_reports.task_id = tasks.id
	AND progress_reports.generation_id >= tasks.generation_id - 1`
	// inputBytes is -1 for an input that was not stored: see InsertReserved.
	inputBytes = `CASE WHEN (parts & 1) = 1 THEN coalesce((SELECT length(data) FROM {inputs} WHERE task_id = tasks.id), -1) ELSE 0 END`
)

// These bits of the column parts say that another table has rows of the task.
const (
	partInput        = 1
	partDependencies = 2
)

type row struct {
	ID             int64   `db:"id"`
	GenerationID   int64   `db:"generation_id"`
	State          string  `db:"state"`
	Queue          string  `db:"queue"`
	Job            string  `db:"job"`
	Args           text    `db:"args"`
	Label          text    `db:"label"`
	Priority       int     `db:"priority"`
	RunAt          number  `db:"run_at"`
	ExpiresAt      number  `db:"expires_at"`
	Attempt        int     `db:"attempt"`
	MaxAttempts    number  `db:"max_attempts"`
	Losses         int     `db:"losses"`
	MaxLosses      int     `db:"max_losses"`
	Worker         number  `db:"worker"`
	LeaseExpiresAt number  `db:"lease_expires_at"`
	UniqueKey      text    `db:"unique_key"`
	Lane           text    `db:"lane"`
	Schedule       text    `db:"schedule"`
	Tick           number  `db:"tick"`
	Batch          number  `db:"batch"`
	Waits          number  `db:"waits"`
	Parts          number  `db:"parts"`
	CreatedAt      number  `db:"created_at"`
	CreatedBy      text    `db:"created_by"`
	UpdatedAt      number  `db:"updated_at"`
	StartedAt      number  `db:"started_at"`
	FinishedAt     number  `db:"finished_at"`
	Options        text    `db:"options"`
	Outcome        text    `db:"outcome"`
	Result         text    `db:"result"`
	WorkerID       text    `db:"worker_id"`
	WorkerName     text    `db:"worker_name"`
	CancelAt       number  `db:"cancel_requested_at"`
	CancelNow      boolean `db:"cancel_now"`
	CancelText     text    `db:"cancel_text"`
	Progress       text    `db:"progress"`
	InputBytes     number  `db:"input_bytes"`
	AfterOpen      text    `db:"after_open"` // JSON list of the ids of open dependencies
	AfterAnyOpen   text    `db:"after_any_open"`
	PausedAt       number  `db:"paused_at"`
	PausedBy       text    `db:"paused_by"`
	PausedReason   text    `db:"paused_reason"`
}

func (r *row) task() jobs.Task {
	t := jobs.Task{
		ID: r.ID, GenerationID: r.GenerationID, Job: r.Job, Args: r.Args.json(), Label: string(r.Label), Queue: r.Queue,
		State: jobs.State(r.State), Priority: r.Priority, UniqueKey: string(r.UniqueKey),
		RunAt: r.RunAt.time(), ExpiresAt: r.ExpiresAt.time(), Attempt: r.Attempt, MaxAttempts: int(r.MaxAttempts),
		Losses: r.Losses, MaxLosses: r.MaxLosses, InputBytes: int64(r.InputBytes), WorkerID: string(r.WorkerID),
		Worker:         string(r.WorkerName),
		LeaseExpiresAt: r.LeaseExpiresAt.time(), CancelRequestedAt: r.CancelAt.time(), CancelNow: bool(r.CancelNow),
		CancelText: string(r.CancelText),
		CreatedAt:  r.CreatedAt.time(), CreatedBy: string(r.CreatedBy), UpdatedAt: r.UpdatedAt.time(), StartedAt: r.StartedAt.time(),
		FinishedAt: r.FinishedAt.time(), Result: r.Result.json(), Progress: r.Progress.progress(), Schedule: string(r.Schedule),
		Tick: r.Tick.time(), Batch: int64(r.Batch),
		Lane: string(r.Lane), Waits: r.Waits == 1, Depends: r.Parts&partDependencies != 0, DependsOn: r.AfterOpen.ids(),
		DependsOnAny: r.AfterAnyOpen.ids(), PausedAt: r.PausedAt.time(), PausedBy: string(r.PausedBy), PausedReason: string(r.PausedReason),
	}
	t.Options = taskspec.DecodeOptions([]byte(r.Options))
	r.Outcome.outcome(r.StartedAt, r.FinishedAt).fill(&t)
	return t
}

// These types read columns that may be NULL. text reads NULL as the empty
// string, and number as 0. boolean reads an integer column or a condition: 0
// and NULL are false.
type (
	text    string
	number  int64
	boolean bool
)

// Scan implements sql.Scanner.
func (t *text) Scan(value any) error {
	switch value := value.(type) {
	case nil:
		*t = ""
	case string:
		*t = text(value)
	case []byte:
		*t = text(value)
	default:
		return fmt.Errorf("text column holds %T", value)
	}
	return nil
}

// Scan implements sql.Scanner.
func (n *number) Scan(value any) error {
	switch value := value.(type) {
	case nil:
		*n = 0
	case int64:
		*n = number(value)
	case float64: // a sum that overflows in SQLite, which only numbers from plain SQL can cause
		*n = number(max(min(value, math.MaxInt64/2), math.MinInt64/2))
	default:
		return fmt.Errorf("integer column holds %T", value)
	}
	return nil
}

// Scan implements sql.Scanner.
func (f *boolean) Scan(value any) error {
	if value, ok := value.(bool); ok { // PostgreSQL returns a condition as bool
		*f = boolean(value)
		return nil
	}
	var n number
	err := n.Scan(value)
	*f = n != 0
	return err
}

// json returns the JSON value of a column. Invalid JSON, which only plain SQL
// can write, becomes a JSON string.
func (t text) json() json.RawMessage {
	if t == "" {
		return nil
	}
	if value := json.RawMessage(t); json.Valid(value) {
		return value
	}
	return json.RawMessage(jsonText(string(t)))
}

// progress returns a report of progress, or nil for none and for one from plain
// SQL that is no valid jobs.Progress.
func (t text) progress() *jobs.Progress {
	var report *jobs.Progress
	if t == "" || json.Unmarshal([]byte(t), &report) != nil {
		return nil
	}
	return report
}

// jsonText is for values that encoding/json can always encode, such as lists of
// numbers and strings.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ids decodes a JSON array of ids that a query has made. A server returns them
// in no order.
func (t text) ids() []int64 {
	var ids []int64
	if t == "" || json.Unmarshal([]byte(t), &ids) != nil {
		return nil
	}
	slices.Sort(ids)
	return ids
}

// RFC 3339 can express the years 0 to 9999; in Unix milliseconds.
const (
	earliest = number(-62167219200000)
	latest   = number(253402300799999)
)

// time converts Unix milliseconds. 0 is the zero time. Plain SQL may have
// written any number, so the result is the nearest time that RFC 3339 can
// express.
func (n number) time() time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(min(max(n, earliest), latest))).UTC()
}

// duration converts milliseconds, at most to the longest duration: plain SQL
// may have written a larger number.
func (n number) duration() time.Duration {
	return time.Duration(min(n, number(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// nullText, nullNumber and nullTime convert empty values to NULL.

func nullText[T ~string | ~[]byte](value T) any {
	if len(value) == 0 {
		return nil
	}
	return string(value)
}

func nullNumber[T ~int | ~int64](value T) any {
	if value == 0 {
		return nil
	}
	return int64(value)
}

func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// millis rounds up, so that a positive duration never becomes 0.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
