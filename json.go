package main

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The records of --json (cli.md 7.2, docs/json.md), a struct each. They are a contract: keys come in this order and every key
// is always there, so no omitempty; null stands for unknown. New keys may be added, none is renamed or removed.

// jsonTask is a task.
type jsonTask struct {
	ID          int64           `json:"id"`
	Job         string          `json:"job"`
	Args        json.RawMessage `json:"args"`
	Label       *string         `json:"label"`
	Queue       string          `json:"queue"`
	State       jobs.State      `json:"state"`
	Reason      *jobs.Reason    `json:"reason"`
	Priority    int             `json:"priority"`
	Lane        *string         `json:"lane"`
	UniqueKey   *string         `json:"unique_key"`
	After       []int64         `json:"after"`
	AfterAny    []int64         `json:"after_any"`
	Schedule    *string         `json:"schedule"`
	RunAt       stamp           `json:"run_at"`
	ExpiresAt   stamp           `json:"expires_at"`
	Attempt     int             `json:"attempt"`
	MaxAttempts *int            `json:"max_attempts"`
	Losses      int             `json:"losses"`
	MaxLosses   int             `json:"max_losses"`
	Timeout     *seconds        `json:"timeout"`
	KillAfter   seconds         `json:"kill_after"`
	jsonOptions

	GenerationID      int64   `json:"generation_id"`
	WorkerID          *string `json:"worker_id"`
	Worker            *string `json:"worker"`
	LeaseExpiresAt    stamp   `json:"lease_expires_at"`
	CancelRequestedAt stamp   `json:"cancel_requested_at"`
	CreatedAt         stamp   `json:"created_at"`
	CreatedBy         *string `json:"created_by"`
	UpdatedAt         stamp   `json:"updated_at"`

	StartedAt       stamp           `json:"started_at"`
	FinishedAt      stamp           `json:"finished_at"`
	Duration        *seconds        `json:"duration"`
	Result          json.RawMessage `json:"result"`
	Error           *string         `json:"error"`
	ExitCode        *int            `json:"exit_code"`
	Signal          *int            `json:"signal"`
	OutputBytes     int64           `json:"output_bytes"`
	OutputTruncated bool            `json:"output_truncated"`
	Progress        json.RawMessage `json:"progress"`
}

// taskRecord is the record of a task as it is at now: a running one's duration is what it has run so far. The values of env
// are hidden; see revealed.
func taskRecord(t jobs.Task, now time.Time) jsonTask {
	return jsonTask{
		ID: t.ID, Job: t.Job, Args: rawJSON(t.Args), Label: known(t.Label), Queue: t.Queue, State: t.State, Reason: known(t.Reason),
		Priority: t.Priority, Lane: known(t.Lane), UniqueKey: known(t.UniqueKey), After: append([]int64{}, t.After...), AfterAny: append([]int64{}, t.AfterAny...),
		Schedule: known(t.Schedule), RunAt: stamp(t.RunAt), ExpiresAt: stamp(t.ExpiresAt), Attempt: t.Attempt,
		MaxAttempts: known(t.MaxAttempts), Losses: t.Losses, MaxLosses: t.MaxLosses, Timeout: known(seconds(t.Timeout)),
		KillAfter: seconds(t.KillAfter), jsonOptions: optionsRecord(t.Options, t.InputBytes),
		GenerationID: t.GenerationID, WorkerID: known(t.WorkerID), Worker: known(t.Worker), LeaseExpiresAt: stamp(t.LeaseExpiresAt),
		CancelRequestedAt: stamp(t.CancelRequestedAt), CreatedAt: stamp(t.CreatedAt), CreatedBy: known(t.CreatedBy),
		UpdatedAt: stamp(t.UpdatedAt),
		StartedAt: stamp(t.StartedAt), FinishedAt: stamp(t.FinishedAt), Duration: ran(t, now), Result: rawJSON(t.Result),
		Error: known(t.Error), ExitCode: t.ExitCode, Signal: known(t.Signal), OutputBytes: t.OutputBytes,
		OutputTruncated: t.OutputTruncated, Progress: rawJSON(t.Progress),
	}
}

// jsonOptions are keys that the records of a task and of a schedule's task have in common, one behind the other.
type jsonOptions struct {
	Backoff     jobs.Strategy      `json:"backoff"`
	Delay       seconds            `json:"backoff_delay"`
	MaxDelay    seconds            `json:"backoff_max"`
	RetryOn     *jobs.Codes        `json:"retry_on"`
	OutputLimit int64              `json:"output_limit"`
	Path        *string            `json:"path"`
	Cwd         *string            `json:"cwd"`
	Env         map[string]*string `json:"env"`
	EnvFile     *string            `json:"env_file"`
	InputBytes  int64              `json:"input_bytes"`
}

func optionsRecord(o jobs.Options, inputBytes int64) jsonOptions {
	return jsonOptions{Backoff: o.Backoff.Strategy, Delay: seconds(o.Backoff.Delay), MaxDelay: seconds(o.Backoff.Max), RetryOn: known(o.RetryOn),
		OutputLimit: o.OutputLimit, Path: known(o.Path), Cwd: known(o.Cwd), Env: hidden(o.Env), EnvFile: known(o.EnvFile), InputBytes: inputBytes}
}

func ran(t jobs.Task, now time.Time) *seconds {
	if d, ok := runner.Lasted(t, now); ok {
		return new(seconds(d))
	}
	return nil
}

// jsonRevealed is a task with --reveal: the values of env are there, and what the command reads on stdin.
type jsonRevealed struct {
	jsonTask
	Input *string `json:"input"` // base64
}

// What enqueue says became of a spec, in jsonEnqueued.
const (
	wasCreated  = "created"
	wasKept     = "kept"     // an unfinished task with the same unique key
	wasReplaced = "replaced" // that task had not started, and became this one
)

// jsonEnqueued is what enqueue prints: the task, and whether it is a new one.
type jsonEnqueued struct {
	jsonTask
	Enqueued string `json:"enqueued"`
}

// jsonFullTask is a task as show prints it.
type jsonFullTask struct {
	jsonTask
	Why          *string          `json:"why"`
	Dependencies []jsonDependency `json:"dependencies"`
	Dependents   []jsonDependency `json:"dependents"`
	Steps        []jsonStep       `json:"steps"`
	History      []jsonAttempt    `json:"history"`
	Outlived     []jsonProcess    `json:"outlived"`
}

// jsonProcess is a process that has outlived its attempt.
type jsonProcess struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	State string `json:"state"`
	UID   int    `json:"uid"`
}

// jsonFullRevealed is jsonFullTask with --reveal.
type jsonFullRevealed struct {
	jsonFullTask
	Input *string `json:"input"`
}

// jsonDependency is a task that another waits for.
type jsonDependency struct {
	ID    int64       `json:"id"`
	Any   bool        `json:"any"`
	State *jobs.State `json:"state"` // null: the task was deleted
}

func dependencyRecord(d runner.Dependency) jsonDependency {
	return jsonDependency{d.ID, d.Any, known(d.State)}
}

// jsonAttempt is one execution of a task.
type jsonAttempt struct {
	TaskID          int64        `json:"task_id"`
	Attempt         int          `json:"attempt"`
	GenerationID    int64        `json:"generation_id"`
	State           jobs.State   `json:"state"`
	Reason          *jobs.Reason `json:"reason"`
	Counted         bool         `json:"counted"`
	WorkerID        *string      `json:"worker_id"`
	Worker          *string      `json:"worker"`
	StartedAt       stamp        `json:"started_at"`
	FinishedAt      stamp        `json:"finished_at"`
	Duration        seconds      `json:"duration"`
	ExitCode        *int         `json:"exit_code"`
	Signal          *int         `json:"signal"`
	Error           *string      `json:"error"`
	OutputBytes     int64        `json:"output_bytes"`
	OutputTruncated bool         `json:"output_truncated"`
}

func attemptRecord(a jobs.Attempt) jsonAttempt {
	return jsonAttempt{TaskID: a.TaskID, Attempt: a.Attempt, GenerationID: a.GenerationID, State: a.State, Reason: known(a.Reason),
		Counted: a.Counted, WorkerID: known(a.WorkerID), Worker: known(a.Worker), StartedAt: stamp(a.StartedAt),
		FinishedAt: stamp(a.FinishedAt), Duration: seconds(a.Duration), ExitCode: a.ExitCode, Signal: known(a.Signal),
		Error: known(a.Error), OutputBytes: a.OutputBytes, OutputTruncated: a.OutputTruncated}
}

// jsonStep is a step of a task that has ended, or a sleep.
type jsonStep struct {
	Name         string          `json:"name"`
	GenerationID int64           `json:"generation_id"`
	At           stamp           `json:"at"`
	WakeAt       stamp           `json:"wake_at"`
	Value        json.RawMessage `json:"value"`
}

func stepRecord(s jobs.Step) jsonStep {
	return jsonStep{Name: s.Name, GenerationID: s.GenerationID, At: stamp(s.At), WakeAt: stamp(s.WakeAt), Value: rawJSON(s.Value)}
}

// jsonChunk is a piece of what an attempt printed.
type jsonChunk struct {
	TaskID       int64  `json:"task_id"`
	Attempt      int    `json:"attempt"`
	GenerationID int64  `json:"generation_id"`
	Seq          int64  `json:"seq"`
	Stream       string `json:"stream"`
	At           stamp  `json:"at"`
	Data         string `json:"data"`
	Encoding     string `json:"encoding"`
	DroppedBytes int64  `json:"dropped_bytes"`
}

// chunkRecord keeps every byte: what is not UTF-8 travels as base64.
func chunkRecord(c jobs.Chunk) jsonChunk {
	r := jsonChunk{TaskID: c.TaskID, Attempt: c.Attempt, GenerationID: c.GenerationID, Seq: c.Seq, Stream: c.Stream, At: stamp(c.At),
		Data: string(c.Data), Encoding: "utf-8", DroppedBytes: c.DroppedBytes}
	if !utf8.Valid(c.Data) {
		r.Data, r.Encoding = base64.StdEncoding.EncodeToString(c.Data), "base64"
	}
	return r
}

// jsonDeleted is what delete prints for a task.
type jsonDeleted struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
}

// jsonBackup is what backup prints.
type jsonBackup struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// jsonMoved is what move prints of a table.
type jsonMoved struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// jsonFence is what fence answers.
type jsonFence struct {
	TaskID       int64 `json:"task_id"`
	GenerationID int64 `json:"generation_id"`
	Owns         bool  `json:"owns"`
}

// jsonServe is what serve prints.
type jsonServe struct {
	URL       string  `json:"url"`
	TokenFile *string `json:"token_file"`
}

// jsonCheck is what a check of doctor found.
type jsonCheck struct {
	Check   string  `json:"check"`
	Status  string  `json:"status"`
	Message string  `json:"message"`
	Try     *string `json:"try"`
}
