package main

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The records of --json (cli.md 7.2, docs/json.md), a struct each. They are a contract: keys come in this order and every key
// is always there, so no omitempty; null stands for unknown. New keys may be added, none is renamed or removed.

// jsonTask is a task.
type jsonTask struct {
	ID          int64              `json:"id"`
	Job         string             `json:"job"`
	Args        json.RawMessage    `json:"args"`
	Label       *string            `json:"label"`
	Queue       string             `json:"queue"`
	State       jobs.State         `json:"state"`
	Reason      *jobs.Reason       `json:"reason"`
	Priority    int                `json:"priority"`
	Lane        *string            `json:"lane"`
	UniqueKey   *string            `json:"unique_key"`
	After       []int64            `json:"after"`
	AfterAny    []int64            `json:"after_any"`
	Schedule    *string            `json:"schedule"`
	RunAt       stamp              `json:"run_at"`
	ExpiresAt   stamp              `json:"expires_at"`
	Attempt     int                `json:"attempt"`
	MaxAttempts *int               `json:"max_attempts"`
	Losses      int                `json:"losses"`
	MaxLosses   int                `json:"max_losses"`
	Timeout     *seconds           `json:"timeout"`
	KillAfter   seconds            `json:"kill_after"`
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
		KillAfter: seconds(t.KillAfter), Backoff: t.Backoff.Strategy, Delay: seconds(t.Backoff.Delay), MaxDelay: seconds(t.Backoff.Max),
		RetryOn: known(t.RetryOn), OutputLimit: t.OutputLimit, Path: known(t.Path), Cwd: known(t.Cwd), Env: hidden(t.Env),
		EnvFile: known(t.EnvFile), InputBytes: t.InputBytes,
		GenerationID: t.GenerationID, WorkerID: known(t.WorkerID), Worker: known(t.Worker), LeaseExpiresAt: stamp(t.LeaseExpiresAt),
		CancelRequestedAt: stamp(t.CancelRequestedAt), CreatedAt: stamp(t.CreatedAt), CreatedBy: known(t.CreatedBy),
		UpdatedAt: stamp(t.UpdatedAt),
		StartedAt: stamp(t.StartedAt), FinishedAt: stamp(t.FinishedAt), Duration: ran(t, now), Result: rawJSON(t.Result),
		Error: known(t.Error), ExitCode: t.ExitCode, Signal: known(t.Signal), OutputBytes: t.OutputBytes,
		OutputTruncated: t.OutputTruncated, Progress: rawJSON(t.Progress),
	}
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

// revealed is an environment with its values.
func revealed(env map[string]string) map[string]*string {
	shown := hidden(env)
	for name, value := range env {
		shown[name] = &value
	}
	return shown
}

// encoded is input in JSON; nil stays null.
func encoded(input []byte) *string {
	if input == nil {
		return nil
	}
	return new(base64.StdEncoding.EncodeToString(input))
}

// hidden keeps the names of an environment.
func hidden(env map[string]string) map[string]*string {
	if len(env) == 0 {
		return nil
	}
	names := make(map[string]*string, len(env))
	for name := range env {
		names[name] = nil
	}
	return names
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

func dependencyRecords(list []runner.Dependency) []jsonDependency {
	records := make([]jsonDependency, len(list))
	for i, d := range list {
		records[i] = jsonDependency{d.ID, d.Any, known(d.State)}
	}
	return records
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

// jsonLimit is a limit and how it stands.
type jsonLimit struct {
	Target    string   `json:"target"`
	Running   *int     `json:"running"`
	Rate      *int     `json:"rate"`
	Per       *seconds `json:"per"`
	Burst     *int     `json:"burst"`
	InUse     int      `json:"in_use"`
	NextAt    stamp    `json:"next_at"`
	UpdatedAt stamp    `json:"updated_at"`
}

func limitRecord(l runner.LimitStat) jsonLimit {
	return jsonLimit{Target: l.Target.String(), Running: known(l.Running), Rate: known(l.Rate), Per: known(seconds(l.Per)),
		Burst: known(l.Burst), InUse: l.InUse, NextAt: stamp(l.NextAt), UpdatedAt: stamp(l.UpdatedAt)}
}

// jsonLimitRemoved is what limit remove prints for a limit.
type jsonLimitRemoved struct {
	Target  string `json:"target"`
	Removed bool   `json:"removed"`
}

// jsonDeleted is what delete prints for a task.
type jsonDeleted struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
}

// jsonQueue is what is in a queue.
type jsonQueue struct {
	Queue        string   `json:"queue"`
	Paused       bool     `json:"paused"`
	PausedAt     stamp    `json:"paused_at"`
	PausedBy     *string  `json:"paused_by"`
	PausedReason *string  `json:"paused_reason"`
	Pending      int      `json:"pending"`
	Scheduled    int      `json:"scheduled"`
	Blocked      int      `json:"blocked"`
	Retrying     int      `json:"retrying"`
	Running      int      `json:"running"`
	Completed24h int      `json:"completed_24h"`
	Failed24h    int      `json:"failed_24h"`
	Cancelled24h int      `json:"cancelled_24h"`
	OldestAge    *seconds `json:"oldest_age"`
}

// paused says whether no task of a queue starts.
func paused(q runner.Queue) bool { return !q.Pause.At.IsZero() }

func queueRecord(q runner.Queue, now time.Time) jsonQueue {
	r := jsonQueue{Queue: q.Queue, Pending: q.Counts[jobs.Pending], Scheduled: q.Counts[jobs.Scheduled], Blocked: q.Counts[jobs.Blocked],
		Retrying: q.Counts[jobs.Retrying], Running: q.Counts[jobs.Running], Completed24h: q.Ended[jobs.Completed],
		Failed24h: q.Ended[jobs.Failed], Cancelled24h: q.Ended[jobs.Cancelled],
		Paused: paused(q), PausedAt: stamp(q.Pause.At), PausedBy: known(q.Pause.By), PausedReason: known(q.Pause.Reason)}
	if !q.Oldest.IsZero() {
		r.OldestAge = new(seconds(max(now.Sub(q.Oldest), 0)))
	}
	return r
}

// jsonQueueFigures is a queue as status -q prints it: with figures of the last hour.
type jsonQueueFigures struct {
	jsonQueue
	WaitP50   *seconds `json:"wait_p50"`
	WaitP95   *seconds `json:"wait_p95"`
	RunP50    *seconds `json:"run_p50"`
	RunP95    *seconds `json:"run_p95"`
	Started1h int      `json:"started_1h"`
}

func queueFiguresRecord(q runner.Queue, f runner.Figures, now time.Time) jsonQueueFigures {
	r := jsonQueueFigures{jsonQueue: queueRecord(q, now), Started1h: f.Starts}
	if f.Tasks > 0 {
		r.WaitP50, r.WaitP95 = new(seconds(f.WaitP50)), new(seconds(f.WaitP95))
		r.RunP50, r.RunP95 = new(seconds(f.RunP50)), new(seconds(f.RunP95))
	}
	return r
}

// jsonWorker is a worker. Queues null: it serves all of them.
type jsonWorker struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Host      string         `json:"host"`
	PID       int            `json:"pid"`
	User      string         `json:"user"`
	Version   string         `json:"version"`
	State     string         `json:"state"`
	Slots     int            `json:"slots"`
	Busy      int            `json:"busy"`
	Queues    []jsonQueueMax `json:"queues"`
	Jobs      []string       `json:"jobs"`
	Running   []int64        `json:"running"`
	StartedAt stamp          `json:"started_at"`
	BeatAt    stamp          `json:"beat_at"`
}

// jsonQueueMax is a queue that a worker serves. Max null: as many of its tasks as there are slots.
type jsonQueueMax struct {
	Queue string `json:"queue"`
	Max   *int   `json:"max"`
}

func workerRecord(w runner.WorkerInfo, now time.Time) jsonWorker {
	r := jsonWorker{ID: w.ID, Name: w.Name, Host: w.Host, PID: w.PID, User: w.User, Version: w.Version, State: runner.WorkerState(w, now),
		Slots: w.Slots, Busy: len(w.Running), Jobs: append([]string{}, w.Jobs...), Running: append([]int64{}, w.Running...),
		StartedAt: stamp(w.StartedAt), BeatAt: stamp(w.BeatAt)}
	for _, q := range w.Queues {
		r.Queues = append(r.Queues, jsonQueueMax{q.Queue, known(q.Max)})
	}
	return r
}

// jsonStatus is what status prints.
type jsonStatus struct {
	DB        string         `json:"db"`
	DBBytes   int64          `json:"db_bytes"`
	WALBytes  int64          `json:"wal_bytes"`
	Schema    int            `json:"schema"`
	Version   string         `json:"version"`
	Paused    bool           `json:"paused"`
	Workers   []jsonWorker   `json:"workers"`
	Queues    []any          `json:"queues"` // jsonQueue, with -q jsonQueueFigures
	Schedules []jsonSchedule `json:"schedules"`
	Problems  []jsonProblem  `json:"problems"`
}

// jsonProblem is something that status thinks somebody should look at.
type jsonProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Try     string `json:"try"`
}

// jsonBackup is what backup prints.
type jsonBackup struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// jsonFence is what fence answers.
type jsonFence struct {
	TaskID       int64 `json:"task_id"`
	GenerationID int64 `json:"generation_id"`
	Owns         bool  `json:"owns"`
}

// jsonServe is what serve prints.
type jsonServe struct {
	URL string `json:"url"`
}

// jsonCheck is what a check of doctor found.
type jsonCheck struct {
	Check   string  `json:"check"`
	Status  string  `json:"status"`
	Message string  `json:"message"`
	Try     *string `json:"try"`
}

// stamp is a time in JSON: RFC 3339 in UTC with milliseconds; the zero time is null.
type stamp time.Time

const stampLayout = "2006-01-02T15:04:05.000Z07:00"

// String is the time as pipes and JSON have it; empty for the zero time.
func (s stamp) String() string {
	if t := time.Time(s); !t.IsZero() {
		return t.UTC().Format(stampLayout)
	}
	return ""
}

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	if time.Time(s).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + s.String() + `"`), nil
}

// seconds is a duration in JSON: a number of seconds with at most three decimals.
type seconds time.Duration

// String is the number as pipes and JSON have it: 2.1, never 2.0999.
func (s seconds) String() string {
	return strconv.FormatFloat(float64(time.Duration(s).Milliseconds())/1000, 'f', -1, 64)
}

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// known is nil, null in JSON, for the value that stands for "none".
func known[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// rawJSON passes JSON on as it is: numbers of any size survive. Text that is none, which older versions of SQLite may have let
// in, becomes a string, so that one bad row does not hide the others.
func rawJSON(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || json.Valid(text) {
		return text
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // strings always marshal
	}
	return quoted
}
