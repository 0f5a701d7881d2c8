package jobs

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs/command"
)

const defaultQueue = "default"

// Defaults of fields of a Spec other than Queue.
const (
	defaultPriority    = 5
	defaultMaxLosses   = 3
	defaultKillAfter   = 10 * time.Second
	defaultOutputLimit = 1 << 20
	commandAttempts    = 1  // default of MaxAttempts for a command
	funcAttempts       = 10 // default of MaxAttempts for a registered function
)

// NewBatch is the value of Spec.Batch that begins a batch.
const NewBatch = -1

// Spec describes a task to enqueue. Make one with Command or Func.With;
// the zero Spec is not valid. Fields that also exist in Task have the same
// meaning as in Task.
type Spec struct {
	Job          string
	Args         json.RawMessage
	Label        string
	Queue        string
	Priority     int
	DependsOn    []int64 // tasks that must complete first; if one fails or is cancelled, this task is cancelled
	DependsOnAny []int64 // tasks that must finish first, in whatever state
	Lane         string
	UniqueKey    string        // see Unique
	Paused       bool          // whether the option Paused was given
	RunAt        time.Time     // due time; zero for now. Set RunAt or In, not both
	In           time.Duration // delay between enqueueing and the due time
	ExpiresIn    time.Duration // time from the due time to the expiry; 0 for no expiry
	ExpiresAt    time.Time     // time of the expiry. Set ExpiresAt or ExpiresIn, not both
	MaxAttempts  int           // greatest number of attempts; 0 for the default of the job
	MaxLosses    int
	Options
	Input []byte // standard input of the command

	// DependsOnEarlier and DependsOnAnyEarlier are like DependsOn and
	// DependsOnAny, for tasks that the same call of EnqueueMany or EnqueueSeq
	// adds. Their values are the positions, from 0, of earlier Specs in that
	// call. If an existing task already holds the unique key of an earlier
	// Spec, the position of that Spec stands for the existing task.
	DependsOnEarlier    []int
	DependsOnAnyEarlier []int

	// Batch groups the tasks that one call adds, so that a Filter selects them.
	// All tasks with the value NewBatch in one call form a new batch. Its id is
	// that of its first task, not counting tasks that are Kept or Replaced. A
	// positive value is the id of an existing batch, which the task joins. 0
	// means no batch. If an existing task already holds the unique key of the
	// Spec, that task keeps its own batch.
	Batch int64

	Schedule  string    // name of the schedule that enqueues the task; the Runner sets Schedule, Tick and CreatedBy
	Tick      time.Time // tick of the schedule; zero if a person started the task
	CreatedBy string    // user who enqueues the task
	Err       error     // error that the method With has found; Enqueue returns it
}

// NewSpec returns the Spec of a task without arguments. Options that are not
// given have their defaults. Use NewSpec for a job that another program
// defines.
func NewSpec(job string, options ...Option) Spec { return newSpec(job, options) }

func newSpec(job string, options ...[]Option) Spec {
	s := Spec{Job: job, Queue: defaultQueue, Priority: defaultPriority, MaxLosses: defaultMaxLosses,
		Options: Options{Backoff: defaultBackoff,
			Settings: command.Settings{KillAfter: defaultKillAfter, OutputLimit: defaultOutputLimit}}}
	for _, list := range options {
		for _, option := range list {
			if option == nil {
				s.Err = invalid("options", "an option is nil")
				continue
			}
			option(&s)
		}
	}

	return s
}

// setArgs sets the arguments, or the error of their encoding.
func (s *Spec) setArgs(args json.RawMessage, err error) {
	s.Args = args
	if s.Err == nil && err != nil {
		s.Err = &FieldError{Field: "args", Msg: err.Error(), Err: err}
	}
}
