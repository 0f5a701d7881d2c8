package jobs

import (
	"encoding/json"
	"time"
)

// Task is one row: run this job, with these arguments, under these rules. It is a copy: changing it changes nothing.
// Zero times, empty texts and zero durations stand for "none" unless said otherwise. What is said of an attempt (from
// StartedAt on) is of the current one, or of the last.
type Task struct {
	ID           int64 // increasing, never reused, gaps allowed
	GenerationID int64 // grows with every change of state or owner
	Job          string
	Args         json.RawMessage // a command's argv, or a function's input; nil: none
	Label        string
	Queue        string
	State        State
	Reason       Reason
	Priority     int     // higher runs first
	After        []int64 // what it still waits for, to complete; empty in a task that was just claimed
	AfterAny     []int64 // what it still waits for, to finish
	Waits        bool    // it waits for other tasks
	Depends      bool    // it waits, or has waited, for other tasks
	Lane         string  // key whose tasks run one at a time
	UniqueKey    string
	Schedule     string
	Tick         time.Time // of Schedule: what it was enqueued for; zero: none
	RunAt        time.Time // when it is due
	ExpiresAt    time.Time // if it has not started by then it never does

	Attempt     int // attempts started that count
	MaxAttempts int // 0: the job's own default, filled in at the first start
	Losses      int
	MaxLosses   int
	Options
	InputBytes int64 // size of what the command reads on stdin

	WorkerID          string
	Worker            string // the name of the worker with that id, for people
	LeaseExpiresAt    time.Time
	CancelRequestedAt time.Time
	CancelNow         bool   // stop it by KILL, without TERM and KillAfter
	CancelText        string // who asked, and why
	CreatedAt         time.Time
	CreatedBy         string
	UpdatedAt         time.Time

	StartedAt       time.Time
	FinishedAt      time.Time // of the task: zero while it is unfinished
	Duration        time.Duration
	Result          json.RawMessage
	Error           string
	ExitCode        *int
	Signal          int
	OutputBytes     int64
	OutputTruncated bool
	Progress        json.RawMessage // {"done", "total", "text"}; nil: none reported
}

// Progress is what a function reports of itself.
type Progress struct {
	Done  int64  // in whatever unit
	Total int64  // 0: not known
	Text  string // at most MaxText bytes
}

// JSON returns the report as tasks keep it: {"done", "total", "text"}, null for what is not known.
func (p Progress) JSON() json.RawMessage {
	record := struct {
		Done  int64   `json:"done"`
		Total *int64  `json:"total"`
		Text  *string `json:"text"`
	}{Done: p.Done}
	if p.Total != 0 {
		record.Total = &p.Total
	}
	if p.Text != "" {
		record.Text = &p.Text
	}
	text, err := MarshalArgs(record)
	if err != nil {
		panic(err) // numbers and text always marshal
	}
	return text
}

// Attempt is the record of one execution of a task that has ended.
type Attempt struct {
	TaskID          int64
	GenerationID    int64 // of the claim
	Attempt         int   // a lost one and its repeat share a number
	State           State // Completed, Failed, Cancelled or Snoozed
	Reason          Reason
	Counted         bool // false: lost, given back or put off
	WorkerID        string
	Worker          string
	StartedAt       time.Time
	FinishedAt      time.Time
	Duration        time.Duration
	ExitCode        *int
	Signal          int
	Error           string
	OutputBytes     int64
	OutputTruncated bool
}

// Chunk is a piece of what an attempt printed, in the order in which it was printed.
type Chunk struct {
	TaskID       int64
	Attempt      int
	GenerationID int64
	Seq          int64
	Stream       string // "stdout" or "stderr"
	At           time.Time
	Data         []byte
	DroppedBytes int64 // printed before this chunk and after the last, and not kept
}
