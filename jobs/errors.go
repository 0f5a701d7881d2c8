package jobs

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of asking for something.
var (
	ErrInvalid    = errors.New("invalid")     // a Spec, a Filter or an option that cannot be; see FieldError
	ErrNotFound   = errors.New("not found")   // no such task
	ErrNoDatabase = errors.New("no database") // the file does not exist and this call does not create it
	ErrPermission = errors.New("permission")  // the system forbids it
	ErrSchema     = errors.New("schema")      // no runner database, or one of a newer runner
)

// Errors of changing something. Unless said otherwise nothing was written.
var (
	ErrConflict = errors.New("conflict") // the task is in a state that forbids it
	ErrBusy     = errors.New("busy")     // another process held the write lock for too long; safe to try again
	ErrFull     = errors.New("full")     // the disk is full; safe to try again later
	ErrReplaced = errors.New("replaced") // the file is no longer the one that was opened
	ErrCorrupt  = errors.New("corrupt")  // the file is damaged
	ErrUnknown  = errors.New("unknown")  // the write was not answered in time: it may have happened, or not
	ErrClosed   = errors.New("closed")   // the database was closed by Close
)

// Errors of running.
var (
	// ErrLost says that the attempt no longer owns its task: a newer generation does. Its results are refused.
	ErrLost = errors.New("lost")
	// ErrCancelled is the cause of a context that ends because someone cancelled the task.
	ErrCancelled = errors.New("cancelled")
	// ErrShutdown is the cause of a context that ends because its worker stops.
	ErrShutdown = errors.New("shutdown")
	// ErrStep says that a step of a function cannot be: see runner.Step.
	ErrStep = errors.New("step")
	// ErrTimeout is the cause of a context that ends because the attempt ran for longer than its timeout.
	ErrTimeout = errors.New("timeout")
)

// Problem is an error that a person reads: what happened, why, and what to try. It matches the sentinel in Kind and
// whatever caused it with errors.Is.
type Problem struct {
	Kind error    // one of the sentinels above
	What string   // one line, lower case, no full stop
	Why  []string // more lines, if they help
	Try  string   // a command to type, or a thing to change; may be empty
	Err  error    // the cause; may be nil
}

func (p *Problem) Error() string {
	if len(p.Why) == 0 {
		return p.What
	}
	return p.What + ": " + strings.Join(p.Why, "; ")
}

// Unwrap makes errors.Is see both the sentinel and the cause.
func (p *Problem) Unwrap() []error {
	if p.Err == nil {
		return []error{p.Kind}
	}
	return []error{p.Kind, p.Err}
}

// FieldError says which field of a Spec is wrong. It matches ErrInvalid.
type FieldError struct {
	Field string // the word of the column, the JSON key and the flag
	Msg   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

// Is reports whether target is ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// FailedError says that a task ended otherwise than completed. Reading a result from such a task returns it.
type FailedError struct {
	ID     int64
	State  State
	Reason Reason
	Msg    string // the error of the last attempt
}

func (e *FailedError) Error() string {
	text := fmt.Sprintf("task %d %s", e.ID, e.State)
	if e.Reason != "" && string(e.Reason) != string(e.State) {
		text += " (" + string(e.Reason) + ")"
	}
	if e.Msg != "" {
		text += ": " + e.Msg
	}
	return text
}
