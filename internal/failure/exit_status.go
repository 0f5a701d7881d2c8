package failure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"example.com/runner/internal/present"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// ExitStatus is an error that ends the program with an exit status and prints nothing. The value is the exit status of a task, or 128+n
// after signal n.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitCode returns the exit status of the program for an error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[ExitStatus](err); ok {
		return int(status)
	}
	return Explain(err).Exit
}

// Explain converts any error to an Error. Only this function knows which code and exit status belong to an error of package jobs.
func Explain(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	f := &Error{Code: "internal", Exit: 1, What: chain(err)[0], Cause: err}
	switch {
	case errors.Is(err, jobs.ErrInvalid):
		f.Code, f.Exit = "usage", 2
	case errors.Is(err, jobs.ErrNotFound):
		f.Code, f.Exit = "not_found", 3
	case errors.Is(err, jobs.ErrBusy):
		f.Code, f.Exit = "busy", 75
	case errors.Is(err, jobs.ErrFull):
		f.Code, f.Exit = "full", 75
	case errors.Is(err, jobs.ErrConflict), errors.Is(err, jobs.ErrLost), errors.Is(err, jobs.ErrCancelled):
		f.Code = "conflict"
	case errors.Is(err, jobs.ErrCorrupt):
		f.Code = "corrupt"
	case errors.Is(err, jobs.ErrReplaced):
		f.Code = "replaced"
	case errors.Is(err, jobs.ErrNoDatabase):
		f.Code = "no_database"
	case errors.Is(err, jobs.ErrPermission):
		f.Code = "permission"
	case errors.Is(err, jobs.ErrSchema):
		f.Code = "schema"
	}
	if p, ok := errors.AsType[*jobs.Error](err); ok {
		why, try := present.Advice(p)
		f.What, f.Why, f.Try, f.Cause = p.What, slices.Concat(p.Why, why), try, cmp.Or(p.Err, err)
	} else if p, ok := errors.AsType[*jobs.FieldError](err); ok {
		f.What = taskspec.FlagText(p)
	}
	return f
}
