package jobs

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of requests.
var (
	ErrInvalid    = errors.New("invalid")     // an invalid Spec, Filter or option; see FieldError
	ErrNotFound   = errors.New("not found")   // no such task, schedule, limit or cursor
	ErrNoDatabase = errors.New("no database") // the database file does not exist, and this call does not create one
	ErrPermission = errors.New("permission")  // the operating system or the server denies access, or the Runner is read-only
	ErrSchema     = errors.New("schema")      // the file is not a database of runner, or is of a newer version
)

// Errors of writes. Unless stated otherwise, nothing was written.
var (
	ErrConflict = errors.New("conflict")               // the state of the task, the database or a file does not allow the operation
	ErrBusy     = errors.New("busy")                   // another process held the write lock for too long; it is safe to try again
	ErrFull     = errors.New("full")                   // the disk is full, or the file has its full size; it is safe to try again later
	ErrReplaced = errors.New("replaced")               // another file is now at the path of the opened database file
	ErrCorrupt  = errors.New("corrupt")                // the file is damaged
	ErrUnknown  = errors.New("unknown")                // the write was not confirmed in time: it may or may not have happened
	ErrClosed   = errors.New("the database is closed") // the database was closed by Close
)

// Errors of attempts.
var (
	// ErrLost means that the attempt does not own its task any more: the task
	// has a newer generation. The database refuses the result of the attempt.
	ErrLost = errors.New("the attempt has lost its task")
	// ErrCancelled is the cause of a context that ends because someone
	// cancelled the task.
	ErrCancelled = errors.New("cancelled")
	// ErrShutdown is the cause of a context that ends because its worker shuts
	// down.
	ErrShutdown = errors.New("shutdown")
	// ErrTimeout is the cause of a context that ends because the attempt ran
	// for longer than its timeout.
	ErrTimeout = errors.New("timeout")
)

// Error is an error with an explanation: the problem, the reasons and a hint.
// errors.Is finds the errors in the fields Kind and Err. errors.AsType[*Error]
// finds the Error itself, with its fields. The texts do not mention flags of
// the command line.
type Error struct {
	Kind    error    // one of the variables above, such as ErrBusy
	Code    string   // name of the exact problem, such as network_filesystem; empty if Kind is exact enough
	Subject string   // path, address, name or id that the error is about; may be empty
	What    string   // description of the problem; one line, lower case, no full stop
	Why     []string // reasons, one per line; may be nil
	Hint    string   // remedy: a valid value, or an action in plain words; may be empty
	Err     error    // the cause; may be nil
}

func (e *Error) Error() string {
	if len(e.Why) == 0 {
		return e.What
	}
	return e.What + ": " + strings.Join(e.Why, "; ")
}

// Unwrap returns Kind and Err, so that errors.Is finds them.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// FieldError is an invalid field of a Spec.
type FieldError struct {
	Field string // name of the field in the database and in JSON, such as max_attempts
	Msg   string
	Err   error // the cause, such as a *json.UnsupportedValueError; may be nil
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

// Unwrap returns ErrInvalid and Err, so that errors.Is finds them.
func (e *FieldError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInvalid}
	}
	return []error{ErrInvalid, e.Err}
}

func invalid(field, format string, args ...any) error {
	return &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// FailedError means that a task has failed or was cancelled. ResultFunc.Result
// returns it for such a task.
type FailedError struct {
	ID     int64
	State  State
	Reason Reason
	Msg    string // error of the last attempt
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
