// Package record defines the JSON records that the command line prints. It also prints records with the template of --format, and as lines
// with tabs for other programs.
package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The types in this package are the records that --json prints; docs/json.md describes them. Users have programs that read these records.
// Therefore a record always has all its keys, in this order, and the types do not use omitempty. Null means unknown. A new version may add
// keys, but it does not rename or remove a key.

// Record is a JSON object that is not a struct, because some of its keys come from the list of task options.
type Record []Member

// Member is a key of a Record and its value.
type Member struct {
	Key   string
	Value any
}

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for _, m := range r {
		text.WriteString(separator + `"` + m.Key + `":`)
		if err := encoder.Encode(m.Value); err != nil {
			return nil, err
		}
		separator = ","
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// The method With returns the record with an additional key.
func (r Record) With(key string, value any) Record { return append(r, Member{key, value}) }

// Only returns the members with these keys, in their order.
func (r Record) Only(keys []string) Record {
	some := make(Record, 0, len(keys))
	for _, key := range keys {
		some = append(some, r[slices.IndexFunc(r, func(m Member) bool { return m.Key == key })])
	}
	return some
}

// set replaces the value of a key.
func (r Record) set(key string, value any) {
	i := slices.IndexFunc(r, func(m Member) bool { return m.Key == key })
	r[i].Value = value
}

// OrNull returns a value. Instead of the zero value it returns nil, which becomes null.
func OrNull[T comparable](value T) any {
	var none T
	if value == none {
		return nil
	}
	return value
}

// NewTask returns the JSON record of a task. The duration of a running task is the time from its start to now. The record names the
// variables in env but does not contain their values; Reveal adds them.
func NewTask(t jobs.Task, now time.Time) Record {
	used := newUsage(t.Usage)
	r := Record{{"id", t.ID}, {"job", t.Job}, {"args", Raw(t.Args)}, {"label", OrNull(t.Label)}, {"queue", t.Queue}, {"state", t.State},
		{"reason", OrNull(t.Reason)}, {"priority", t.Priority}, {"lane", OrNull(t.Lane)}, {"unique_key", OrNull(t.UniqueKey)},
		{"after", append([]int64{}, t.After...)}, {"after_any", append([]int64{}, t.AfterAny...)}, {"schedule", OrNull(t.Schedule)},
		{"batch", OrNull(t.Batch)}, {"run_at", Stamp(t.RunAt)}, {"expires_at", Stamp(t.ExpiresAt)}, {"attempt", t.Attempt},
		{"max_attempts", OrNull(t.MaxAttempts)},
		{"losses", t.Losses}, {"max_losses", t.MaxLosses}}
	spec := jobs.Spec{Options: t.Options}
	for i := range taskspec.OptionList() {
		if o := &taskspec.OptionList()[i]; o.Stored() {
			r = append(r, optionMember(o, &spec))
		}
	}
	return append(r, Record{{"input_bytes", t.InputBytes}, {"generation_id", t.GenerationID}, {"worker_id", OrNull(t.WorkerID)},
		{"worker", OrNull(t.Worker)}, {"lease_expires_at", Stamp(t.LeaseExpiresAt)}, {"cancel_requested_at", Stamp(t.CancelRequestedAt)},
		{"paused_at", Stamp(t.PausedAt)}, {"paused_by", OrNull(t.PausedBy)}, {"paused_reason", OrNull(t.PausedReason)},
		{"created_at", Stamp(t.CreatedAt)}, {"created_by", OrNull(t.CreatedBy)}, {"updated_at", Stamp(t.UpdatedAt)},
		{"started_at", Stamp(t.StartedAt)}, {"finished_at", Stamp(t.FinishedAt)}, {"duration", ran(t, now)}, {"result", Raw(t.Result)},
		{"error", OrNull(t.Error)}, {"error_line", OrNull(t.ErrorLine)}, {"exit_code", t.ExitCode}, {"signal", OrNull(t.Signal)},
		{"output_bytes", t.OutputBytes},
		{"output_truncated", t.OutputTruncated}, {"children_killed", t.ChildrenKilled}, {"children_left", t.ChildrenLeft},
		{"user_time", used.UserTime}, {"system_time", used.SystemTime}, {"max_rss", used.MaxRSS}, {"read_bytes", used.ReadBytes},
		{"written_bytes", used.WrittenBytes},
		{"progress", Raw(taskspec.ProgressJSON(t.Progress))}}...)
}

// optionMember returns the key and the JSON value of a task option. A duration becomes a number of seconds. If zero means "not set" for the
// option, zero becomes null.
func optionMember(o *taskspec.OptionInfo, s *jobs.Spec) Member {
	m := Member{Key: o.Key}
	switch value := o.Field(s).(type) {
	case *string:
		m.Value = OrNull(*value)
	case *jobs.Codes:
		m.Value = OrNull(*value)
	case *int:
		m.Value = *value
	case *int64:
		m.Value = *value
	case *time.Duration:
		m.Value = Seconds(*value)
	case *map[string]string:
		if m.Value = texts(*value); o.Secret {
			m.Value = hidden(*value)
		}
	case *bool:
		m.Value = *value
	}
	if o.Zero != "" && o.IsDefault(s) {
		m.Value = nil
	}
	return m
}

// The function "ran" returns how long the current or last attempt of a task has run, or nil if the task has never started.
func ran(t jobs.Task, now time.Time) any {
	if d, ok := present.Lasted(t, now); ok {
		return Seconds(d)
	}
	return nil
}

// Reveal returns the record with additional data, for --reveal: the values of the variables in env, and the input as base64.
func (r Record) Reveal(env map[string]string, input []byte) Record {
	r.set("env", revealed(env))
	return append(r, Member{"input", encoded(input)})
}

// These are the values of the key "enqueued", which the command enqueue adds to the record of a task.
const (
	WasCreated  = "created"
	WasKept     = "kept"     // nothing was added, because an older task has the unique key
	WasReplaced = "replaced" // the task replaced an older task that had the unique key and had not started
)

// Process is the record of a process that still runs although its attempt has ended.
type Process struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	State string `json:"state"`
	UID   int    `json:"uid"`
}

// Dependency is the record of a task that another task waits for.
type Dependency struct {
	ID    int64       `json:"id"`
	Any   bool        `json:"any"`
	State *jobs.State `json:"state"` // null if the task was deleted
}

func NewDependency(d runner.Dependency) Dependency {
	return Dependency{d.ID, d.Any, Known(d.State)}
}

// TaskChange is the record of a change that a user has made to a task.
type TaskChange struct {
	At     Stamp   `json:"at"`
	By     *string `json:"by"`
	Action string  `json:"action"`
	Text   *string `json:"text"`
}

func NewTaskChange(c admin.TaskChange) TaskChange {
	return TaskChange{At: Stamp(c.At), By: Known(c.By), Action: c.Action, Text: Known(c.Text)}
}

// Attempt is the record of an attempt of a task.
type Attempt struct {
	TaskID          int64        `json:"task_id"`
	Attempt         int          `json:"attempt"`
	GenerationID    int64        `json:"generation_id"`
	State           jobs.State   `json:"state"`
	Reason          *jobs.Reason `json:"reason"`
	Counted         bool         `json:"counted"`
	WorkerID        *string      `json:"worker_id"`
	Worker          *string      `json:"worker"`
	StartedAt       Stamp        `json:"started_at"`
	FinishedAt      Stamp        `json:"finished_at"`
	Duration        Seconds      `json:"duration"`
	ExitCode        *int         `json:"exit_code"`
	Signal          *int         `json:"signal"`
	Error           *string      `json:"error"`
	OutputBytes     int64        `json:"output_bytes"`
	OutputTruncated bool         `json:"output_truncated"`
	ChildrenKilled  int          `json:"children_killed"`
	ChildrenLeft    int          `json:"children_left"`
	Usage
	ErrorLine *string `json:"error_line"`
}

// Usage contains the keys about the resources that a command used. The values are null if they are unknown.
type Usage struct {
	UserTime     *Seconds `json:"user_time"`
	SystemTime   *Seconds `json:"system_time"`
	MaxRSS       *int64   `json:"max_rss"`
	ReadBytes    *int64   `json:"read_bytes"`
	WrittenBytes *int64   `json:"written_bytes"`
}

func newUsage(u jobs.Usage) Usage {
	if u == (jobs.Usage{}) {
		return Usage{}
	}
	return Usage{new(Seconds(u.User)), new(Seconds(u.System)), &u.MaxRSS, &u.Read, &u.Written}
}

func NewAttempt(a jobs.Attempt) Attempt {
	return Attempt{TaskID: a.TaskID, Attempt: a.Attempt, GenerationID: a.GenerationID, State: a.State, Reason: Known(a.Reason),
		Counted: a.Counted, WorkerID: Known(a.WorkerID), Worker: Known(a.Worker), StartedAt: Stamp(a.StartedAt),
		FinishedAt: Stamp(a.FinishedAt), Duration: Seconds(a.Duration), ExitCode: a.ExitCode, Signal: Known(a.Signal),
		Error: Known(a.Error), ErrorLine: Known(a.ErrorLine), OutputBytes: a.OutputBytes, OutputTruncated: a.OutputTruncated,
		ChildrenKilled: a.ChildrenKilled, ChildrenLeft: a.ChildrenLeft, Usage: newUsage(a.Usage)}
}

// Step is the record of a finished step of a task, or of a sleep.
type Step struct {
	Name         string          `json:"name"`
	GenerationID int64           `json:"generation_id"`
	At           Stamp           `json:"at"`
	WakeAt       Stamp           `json:"wake_at"`
	Value        json.RawMessage `json:"value"`
}

func NewStep(s jobs.Step) Step {
	return Step{Name: s.Name, GenerationID: s.GenerationID, At: Stamp(s.At), WakeAt: Stamp(s.WakeAt), Value: Raw(s.Value)}
}

// Chunk is the record of a piece of an attempt's output.
type Chunk struct {
	TaskID       int64  `json:"task_id"`
	Attempt      int    `json:"attempt"`
	GenerationID int64  `json:"generation_id"`
	Seq          int64  `json:"seq"`
	Stream       string `json:"stream"`
	At           Stamp  `json:"at"`
	Data         string `json:"data"`
	Encoding     string `json:"encoding"`
	DroppedBytes int64  `json:"dropped_bytes"`
}

// NewChunk returns the record of a piece of output. It encodes data that is not UTF-8 as base64, because JSON cannot contain such bytes.
func NewChunk(c jobs.Chunk) Chunk {
	r := Chunk{TaskID: c.TaskID, Attempt: c.Attempt, GenerationID: c.GenerationID, Seq: c.Seq, Stream: c.Stream, At: Stamp(c.At),
		Data: string(c.Data), Encoding: "utf-8", DroppedBytes: c.DroppedBytes}
	if !utf8.Valid(c.Data) {
		r.Data, r.Encoding = base64.StdEncoding.EncodeToString(c.Data), "base64"
	}
	return r
}

// Deleted is the record that "runner delete" prints for a task.
type Deleted struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
}

// Backup is the record that "runner backup" prints.
type Backup struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Restore is the record that "runner restore" prints.
type Restore struct {
	Database string  `json:"database"`
	Bytes    int64   `json:"bytes"`
	Kept     *string `json:"kept"`
}

// Service is the record that "service install" prints.
type Service struct {
	Unit     string `json:"unit"`
	File     string `json:"file"`
	Changed  bool   `json:"changed"`
	Database string `json:"database"`
}

// ServiceRemoved is the record that "service uninstall" prints.
type ServiceRemoved struct {
	Unit    string `json:"unit"`
	File    string `json:"file"`
	Removed bool   `json:"removed"`
}

// Moved is the record that the command move prints for each table.
type Moved struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// Fence is the record that "runner fence" prints.
type Fence struct {
	TaskID       int64 `json:"task_id"`
	GenerationID int64 `json:"generation_id"`
	Owns         bool  `json:"owns"`
}

// Serve is the record that "runner serve" prints.
type Serve struct {
	URL       string  `json:"url"`
	TokenFile *string `json:"token_file"`
}

// Check is the record of the result of one check of doctor.
type Check struct {
	Check   string  `json:"check"`
	Status  string  `json:"status"`
	Message string  `json:"message"`
	Try     *string `json:"try"`
}
