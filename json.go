package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/present"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The records of --json, which docs/json.md describes. They are a contract: keys come in this order and every key is always there, so no
// omitempty. Null stands for unknown. New keys may be added, and none is renamed or removed.

// record is a JSON object whose keys are not those of a struct: the task options are a part of it.
type record []member

type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (r record) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range r {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), m.key...), `":`...)
		switch value := m.value.(type) {
		case nil:
			text = append(text, "null"...)
		case int:
			text = strconv.AppendInt(text, int64(value), 10)
		case int64:
			text = strconv.AppendInt(text, value, 10)
		case bool:
			text = strconv.AppendBool(text, value)
		case stamp:
			text = value.appendJSON(text)
		case seconds:
			text = append(text, value.String()...)
		default:
			encoded, err := jobs.MarshalArgs(value)
			if err != nil {
				return nil, err
			}
			text = append(text, encoded...)
		}
	}
	return append(text, '}'), nil
}

// set changes the value of a key.
func (r record) set(key string, value any) {
	i := slices.IndexFunc(r, func(m member) bool { return m.key == key })
	r[i].value = value
}

// orNull returns a value, or nil for the zero value, which stands for "none".
func orNull[T comparable](value T) any {
	var none T
	if value == none {
		return nil
	}
	return value
}

// taskRecord is the record of a task at now: the duration of a running task is the time since its start. The values of env
// are hidden; see revealed.
func taskRecord(t jobs.Task, now time.Time) record {
	r := record{{"id", t.ID}, {"job", t.Job}, {"args", rawJSON(t.Args)}, {"label", orNull(t.Label)}, {"queue", t.Queue}, {"state", t.State},
		{"reason", orNull(t.Reason)}, {"priority", t.Priority}, {"lane", orNull(t.Lane)}, {"unique_key", orNull(t.UniqueKey)},
		{"after", append([]int64{}, t.After...)}, {"after_any", append([]int64{}, t.AfterAny...)}, {"schedule", orNull(t.Schedule)},
		{"run_at", stamp(t.RunAt)}, {"expires_at", stamp(t.ExpiresAt)}, {"attempt", t.Attempt}, {"max_attempts", orNull(t.MaxAttempts)},
		{"losses", t.Losses}, {"max_losses", t.MaxLosses}}
	spec := jobs.Spec{Options: t.Options}
	for i := range jobs.OptionList() {
		if o := &jobs.OptionList()[i]; o.Stored() {
			r = append(r, optionMember(o, &spec))
		}
	}
	return append(r, record{{"input_bytes", t.InputBytes}, {"generation_id", t.GenerationID}, {"worker_id", orNull(t.WorkerID)},
		{"worker", orNull(t.Worker)},
		{"lease_expires_at", stamp(t.LeaseExpiresAt)}, {"cancel_requested_at", stamp(t.CancelRequestedAt)}, {"created_at", stamp(t.CreatedAt)},
		{"created_by", orNull(t.CreatedBy)}, {"updated_at", stamp(t.UpdatedAt)},
		{"started_at", stamp(t.StartedAt)}, {"finished_at", stamp(t.FinishedAt)}, {"duration", ran(t, now)}, {"result", rawJSON(t.Result)},
		{"error", orNull(t.Error)}, {"exit_code", t.ExitCode}, {"signal", orNull(t.Signal)}, {"output_bytes", t.OutputBytes},
		{"output_truncated", t.OutputTruncated}, {"progress", rawJSON(t.Progress)}}...)
}

// optionMember returns a task option as JSON has it: durations in seconds, and null for a zero that is the default.
func optionMember(o *jobs.OptionInfo, s *jobs.Spec) member {
	m := member{key: o.Key}
	switch value := o.Field(s).(type) {
	case *string:
		m.value = orNull(*value)
	case *jobs.Codes:
		m.value = orNull(*value)
	case *int:
		m.value = *value
	case *int64:
		m.value = *value
	case *time.Duration:
		m.value = seconds(*value)
	case *map[string]string:
		m.value = hidden(*value)
	}
	if o.Zero != "" && o.IsDefault(s) {
		m.value = nil
	}
	return m
}

// ran returns how long a task has run in its current or last attempt.
func ran(t jobs.Task, now time.Time) any {
	if d, ok := present.Lasted(t, now); ok {
		return seconds(d)
	}
	return nil
}

// reveal adds what --reveal shows: the values of env, and the input as base64.
func (r record) reveal(env map[string]string, input []byte) record {
	r.set("env", revealed(env))
	return append(r, member{"input", encoded(input)})
}

// The values of the key enqueued, which enqueue adds to the record of a task.
const (
	wasCreated  = "created"
	wasKept     = "kept"     // an unfinished task with the same unique key
	wasReplaced = "replaced" // that task had not started, and became this one
)

// jsonProcess is a process that has outlived its attempt.
type jsonProcess struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	State string `json:"state"`
	UID   int    `json:"uid"`
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
