package jobs

import (
	"encoding/json"
	"time"
)

// Limits of what a task may hold. The schema checks the same numbers.
const (
	MaxArgs   = 1 << 20   // bytes of JSON
	MaxResult = 1 << 20   // bytes of JSON
	MaxDepth  = 1000      // objects and arrays of args and results within each other: SQLite refuses more
	MaxInput  = 16 << 20  // bytes on stdin
	MaxEnv    = 128 << 10 // bytes of the environment as JSON
	MaxError  = 8 << 10   // bytes of an error
	MaxPath   = 4 << 10   // bytes of a path
	MaxName   = 100       // characters of a queue, schedule or job
	MaxText   = 200       // bytes of a lane, unique key, label, user, step or report of progress
	MaxCodes  = 1000      // bytes of exit codes
	MaxAfter  = 50_000    // tasks that a task waits for
	MaxSteps  = 10_000    // steps and sleeps of a task
	MaxDelay  = 10 * 365 * 24 * time.Hour
)

// Defaults of a task that says nothing else.
const (
	DefaultQueue       = "default"
	DefaultPriority    = 5
	DefaultMaxLosses   = 3
	DefaultKillAfter   = 10 * time.Second
	DefaultOutputLimit = 1 << 20
	CommandAttempts    = 1  // max attempts of a command
	FuncAttempts       = 10 // max attempts of a registered function
)

// CommandJob is the name of the job that runs an argv. It is reserved.
const CommandJob = "command"

// Spec is what is asked: a task that does not exist yet. Make one with Command.With or Func.With; the zero Spec is not
// valid. Times and durations mean what they mean in Task.
type Spec struct {
	Job         string
	Args        json.RawMessage
	Label       string
	Queue       string
	Priority    int
	After       []int64 // start when these have completed; if one ends otherwise this one is cancelled
	AfterAny    []int64 // start when these have finished, however they end
	Lane        string
	UniqueKey   string
	Replace     bool          // an unfinished task with UniqueKey that has not started becomes this one, keeping its id
	RunAt       time.Time     // zero: now
	In          time.Duration // after enqueueing; RunAt and In exclude each other
	ExpiresIn   time.Duration // after it is due; 0: never
	ExpiresAt   time.Time     // zero: as ExpiresIn says; they exclude each other
	MaxAttempts int           // 0: the job's own default
	MaxLosses   int
	Options
	Input []byte // what the command reads on stdin

	// Earlier and EarlierAny are After and AfterAny for tasks that do not exist yet: the positions, from 0, of earlier Specs
	// of the same call of EnqueueAll or Add.
	Earlier    []int
	EarlierAny []int

	Schedule  string    // whose task it is; the Runner fills it in, as the next two
	Tick      time.Time // of Schedule; zero: it was run by hand
	CreatedBy string    // who asks
	Err       error     // why this Spec cannot be enqueued: Enqueue returns it, as exec.Cmd does
}

func newSpec(job string, options ...[]Option) Spec {
	s := Spec{Job: job, Queue: DefaultQueue, Priority: DefaultPriority, MaxLosses: DefaultMaxLosses, Options: DefaultOptions()}
	for _, list := range options {
		for _, option := range list {
			option(&s)
		}
	}
	return s
}

// Ordered says whether others decide where the task stands when it is added: it has a lane, or names tasks to wait for.
func (s *Spec) Ordered() bool {
	return s.Lane != "" || len(s.After)+len(s.AfterAny)+len(s.Earlier)+len(s.EarlierAny) > 0
}

// Task returns the task that the Spec asks for, enqueued at now: everything but its id. It does not validate.
func (s *Spec) Task(now time.Time) Task {
	t := Task{GenerationID: 1, Job: s.Job, Args: s.Args, Label: s.Label, Queue: s.Queue, State: Pending, Priority: s.Priority,
		Lane: s.Lane, UniqueKey: s.UniqueKey, RunAt: now.Add(s.In), MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, Options: s.Options,
		InputBytes: int64(len(s.Input)), Schedule: s.Schedule, Tick: s.Tick, CreatedAt: now,
		CreatedBy: s.CreatedBy, UpdatedAt: now}
	if !s.RunAt.IsZero() {
		t.RunAt = s.RunAt
	}
	if t.RunAt.After(now) {
		t.State = Scheduled
	} else if t.Tick.IsZero() { // one that is caught up was due at its tick, and expires from there
		t.RunAt = now
	}
	if s.ExpiresIn > 0 {
		t.ExpiresAt = t.RunAt.Add(s.ExpiresIn)
	}
	if !s.ExpiresAt.IsZero() {
		t.ExpiresAt = s.ExpiresAt
	}
	return t
}
