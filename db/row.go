package db

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"example.com/runner/jobs"
)

// taskColumns are the columns of a task, in the order of the schema. row has a field for each of them and for worker, the
// name joined from workers; sqlx fails on a column without one.
const taskColumns = `tasks.id, tasks.generation_id, tasks.job, tasks.args, tasks.label, tasks.queue, tasks.state, tasks.reason,
	tasks.priority, tasks.unique_key, tasks.run_at, tasks.expires_at, tasks.attempt, tasks.max_attempts, tasks.losses,
	tasks.max_losses, tasks.timeout, tasks.kill_after, tasks.backoff, tasks.backoff_delay, tasks.backoff_max, tasks.retry_on,
	tasks.output_limit, tasks.path, tasks.cwd, tasks.env, tasks.env_file, tasks.input_bytes, tasks.worker_id,
	tasks.lease_expires_at, tasks.cancel_requested_at, tasks.cancel_now, tasks.cancel_text, tasks.created_at, tasks.created_by, tasks.updated_at, tasks.started_at,
	tasks.finished_at, tasks.duration, tasks.result, tasks.error, tasks.exit_code, tasks.signal, tasks.output_bytes,
	tasks.output_truncated, tasks.progress, tasks.schedule, tasks.tick, tasks.after, tasks.after_any, tasks.lane, tasks.waits`

type row struct {
	ID              int64   `db:"id"`
	GenerationID    int64   `db:"generation_id"`
	Job             string  `db:"job"`
	Args            text    `db:"args"`
	Label           text    `db:"label"`
	Queue           string  `db:"queue"`
	State           string  `db:"state"`
	Reason          text    `db:"reason"`
	Priority        int     `db:"priority"`
	UniqueKey       text    `db:"unique_key"`
	RunAt           number  `db:"run_at"`
	ExpiresAt       number  `db:"expires_at"`
	Attempt         int     `db:"attempt"`
	MaxAttempts     number  `db:"max_attempts"`
	Losses          int     `db:"losses"`
	MaxLosses       int     `db:"max_losses"`
	Timeout         number  `db:"timeout"`
	KillAfter       number  `db:"kill_after"`
	Backoff         text    `db:"backoff"`
	BackoffDelay    number  `db:"backoff_delay"`
	BackoffMax      number  `db:"backoff_max"`
	RetryOn         text    `db:"retry_on"`
	OutputLimit     int64   `db:"output_limit"`
	Path            text    `db:"path"`
	Cwd             text    `db:"cwd"`
	Env             text    `db:"env"`
	EnvFile         text    `db:"env_file"`
	InputBytes      int64   `db:"input_bytes"`
	WorkerID        text    `db:"worker_id"`
	Worker          text    `db:"worker"`
	LeaseExpiresAt  number  `db:"lease_expires_at"`
	CancelAt        number  `db:"cancel_requested_at"`
	CancelNow       boolean `db:"cancel_now"`
	CancelText      text    `db:"cancel_text"`
	CreatedAt       number  `db:"created_at"`
	CreatedBy       text    `db:"created_by"`
	UpdatedAt       number  `db:"updated_at"`
	StartedAt       number  `db:"started_at"`
	FinishedAt      number  `db:"finished_at"`
	Duration        number  `db:"duration"`
	Result          text    `db:"result"`
	Error           text    `db:"error"`
	ExitCode        choice  `db:"exit_code"`
	Signal          number  `db:"signal"`
	OutputBytes     int64   `db:"output_bytes"`
	OutputTruncated boolean `db:"output_truncated"`
	Progress        text    `db:"progress"`
	Schedule        text    `db:"schedule"`
	Tick            number  `db:"tick"`
	Lane            text    `db:"lane"`
	Waits           number  `db:"waits"`
	After           text    `db:"after"` // as it was written; Depends, in a claim, says whether one of both was
	AfterAny        text    `db:"after_any"`
	Depends         bool    `db:"depends"`
	AfterOpen       text    `db:"after_open"` // of selectTasks: JSON, what it still waits for
	AfterAnyOpen    text    `db:"after_any_open"`
}

func (r *row) task() jobs.Task {
	return jobs.Task{
		ID: r.ID, GenerationID: r.GenerationID, Job: r.Job, Args: r.Args.json(), Label: string(r.Label), Queue: r.Queue,
		State: jobs.State(r.State), Reason: jobs.Reason(r.Reason), Priority: r.Priority, UniqueKey: string(r.UniqueKey),
		RunAt: r.RunAt.time(), ExpiresAt: r.ExpiresAt.time(), Attempt: r.Attempt, MaxAttempts: int(r.MaxAttempts),
		Losses: r.Losses, MaxLosses: r.MaxLosses, Timeout: r.Timeout.duration(), KillAfter: r.KillAfter.duration(),
		Backoff: jobs.Backoff{Strategy: jobs.Strategy(r.Backoff), Delay: r.BackoffDelay.duration(), Max: r.BackoffMax.duration()},
		RetryOn: jobs.Codes(r.RetryOn), OutputLimit: r.OutputLimit, Path: string(r.Path), Cwd: string(r.Cwd), Env: r.Env.object(),
		EnvFile: string(r.EnvFile), InputBytes: r.InputBytes, WorkerID: string(r.WorkerID), Worker: string(r.Worker),
		LeaseExpiresAt: r.LeaseExpiresAt.time(), CancelRequestedAt: r.CancelAt.time(),
		CancelNow: bool(r.CancelNow), CancelText: string(r.CancelText), CreatedAt: r.CreatedAt.time(),
		CreatedBy: string(r.CreatedBy), UpdatedAt: r.UpdatedAt.time(), StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(),
		Duration: r.Duration.duration(), Result: r.Result.json(), Error: string(r.Error), ExitCode: r.ExitCode.value,
		Signal: int(r.Signal), OutputBytes: r.OutputBytes, OutputTruncated: bool(r.OutputTruncated), Progress: r.Progress.json(),
		Schedule: string(r.Schedule), Tick: r.Tick.time(),
		Lane: string(r.Lane), Waits: r.Waits == 1, Depends: r.Depends || r.After != "" || r.AfterAny != "",
		After: r.AfterOpen.ids(), AfterAny: r.AfterAnyOpen.ids(),
	}
}

// text, number and choice are columns that may be null: the empty text, 0, and nil stand for it. A boolean is an integer column or a condition: any
// number but 0 is true, null is false.
type (
	text    string
	number  int64
	choice  struct{ value *int }
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
	default:
		return fmt.Errorf("integer column holds %T", value)
	}
	return nil
}

// Scan implements sql.Scanner.
func (c *choice) Scan(value any) error {
	if c.value = nil; value == nil {
		return nil
	}
	var n number
	if err := n.Scan(value); err != nil {
		return err
	}
	i := int(n)
	c.value = &i
	return nil
}

// Scan implements sql.Scanner.
func (f *boolean) Scan(value any) error {
	if value, ok := value.(bool); ok { // a condition, on PostgreSQL
		*f = boolean(value)
		return nil
	}
	var n number
	if err := n.Scan(value); err != nil {
		return err
	}
	*f = n != 0
	return nil
}

func (t text) json() json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}

// object reads a JSON object of texts. What is none, which only plain SQL can have written, has no entries.
func (t text) object() map[string]string {
	if t == "" {
		return nil
	}
	var object map[string]string
	if json.Unmarshal([]byte(t), &object) != nil {
		return nil
	}
	return object
}

// ids reads a JSON array of ids that this package made.
func (t text) ids() []int64 {
	var ids []int64
	if t == "" || json.Unmarshal([]byte(t), &ids) != nil {
		return nil
	}
	return ids
}

// The times that RFC 3339 can write: the years 0 to 9999.
const (
	earliest = number(-62167219200000)
	latest   = number(253402300799999)
)

// time is the nearest time that RFC 3339 can write: plain SQL may have written any number.
func (n number) time() time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(min(max(n, earliest), latest))).UTC()
}

// duration is the longest there is for what plain SQL may have written beyond it.
func (n number) duration() time.Duration {
	return time.Duration(min(n, number(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// The other way round: null for what is empty.

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

// nullIDs is a JSON array.
func nullIDs(ids []int64) any {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		panic(err) // numbers always marshal
	}
	return string(list)
}

func nullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func nullInt(value *int) any {
	if value == nil {
		return nil
	}
	return int64(*value)
}

// millis rounds up, so that a duration that is not 0 never becomes 0.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
