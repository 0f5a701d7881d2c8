package ui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// ExitStatus is an error that ends the program with a task's exit status, or
// 128+n after signal n, and prints nothing.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitCode returns the program's exit status for an error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[ExitStatus](err); ok {
		return int(status)
	}
	return Explain(err).Exit
}

// kinds says which code and exit status belong to an error of package jobs.
var kinds = []struct {
	kind error
	as   Error
}{
	{jobs.ErrInvalid, Error{Code: "usage", Exit: 2}},
	{jobs.ErrNotFound, Error{Code: "not_found", Exit: 3}},
	{jobs.ErrBusy, Error{Code: "busy", Exit: 75}},
	{jobs.ErrFull, Error{Code: "full", Exit: 75}},
	{jobs.ErrConflict, Error{Code: "conflict", Exit: 1}},
	{jobs.ErrLost, Error{Code: "conflict", Exit: 1}},
	{jobs.ErrCancelled, Error{Code: "conflict", Exit: 1}},
	{jobs.ErrCorrupt, Error{Code: "corrupt", Exit: 1}},
	{jobs.ErrReplaced, Error{Code: "replaced", Exit: 1}},
	{jobs.ErrNoDatabase, Error{Code: "no_database", Exit: 1}},
	{jobs.ErrPermission, Error{Code: "permission", Exit: 1}},
	{jobs.ErrSchema, Error{Code: "schema", Exit: 1}},
}

// Explain converts any error to an Error.
func Explain(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}

	f := &Error{Code: "internal", Exit: 1, What: textOf(err), Cause: err}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			f.Code, f.Exit = k.as.Code, k.as.Exit
			break
		}
	}

	if p, ok := errors.AsType[*jobs.Error](err); ok {
		why, try := Advice(p)
		f.What, f.Why, f.Try, f.Cause = p.What, slices.Concat(p.Why, why), try, cmp.Or(p.Err, err)
	} else if p, ok := errors.AsType[*jobs.FieldError](err); ok {
		f.What = taskspec.FlagText(p)
	}

	return f
}
