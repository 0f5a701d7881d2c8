package ui

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"example.com/runner/internal/humanize"
)

// Error is an error for the person who typed the command: what failed, why, and
// what to try. The texts are in lower case, without a full stop. Explain
// converts other errors to it.
type Error struct {
	Code  string   // key "code" of the JSON error: usage, not_found, busy, …
	Exit  int      // exit status of the program
	What  string   // what failed, in one line
	Why   []string // reasons, one per line
	Try   string   // what to try: a command to type, or a value to change
	Cause error    // error that this error wraps; shown with --verbose
	Told  bool     // whether Printer.Tell has printed it already
}

func (f *Error) Error() string { return strings.Join(append([]string{f.What}, f.Why...), "; ") }
func (f *Error) Unwrap() error { return f.Cause }

// Usage returns the error for an invalid command line. Status 2 means that the
// command changed nothing.
func Usage(format string, args ...any) *Error {
	return &Error{Code: "usage", Exit: 2, What: fmt.Sprintf(format, args...)}
}

// Exclusive returns the error for two options that exclude each other.
func Exclusive(one, other string) *Error {
	return Usage("%s and %s cannot be used together", one, other)
}

// NotFound returns the error for something that doesn't exist. list is a
// command that lists what exists.
func NotFound(list, format string, args ...any) *Error {
	return &Error{Code: "not_found", Exit: 3, What: fmt.Sprintf(format, args...), Try: list}
}

// NoTasks returns the error for ids without a task. It names at most ten.
func NoTasks(ids []int64) *Error {
	text := ""
	for i, id := range ids {
		if i == 10 {
			text += fmt.Sprintf(" and %d more", len(ids)-i)
			break
		}
		text += ", " + strconv.FormatInt(id, 10)
	}

	noun := "no task "
	if len(ids) > 1 {
		noun = "no tasks "
	}

	return NotFound("runner list", "%s", noun+strings.TrimPrefix(text, ", "))
}

// Internal returns an error that neither the user nor the database has caused.
func Internal(what string, err error) *Error {
	return &Error{Code: "internal", Exit: 1, What: what, Why: []string{err.Error()}, Cause: err}
}

// Because adds lines that say why the command failed.
func (f *Error) Because(lines ...string) *Error { f.Why = append(f.Why, lines...); return f }

// Hint sets what to try.
func (f *Error) Hint(format string, args ...any) *Error {
	f.Try = fmt.Sprintf(format, args...)
	return f
}

// WhileWaiting changes the exit status of runner's own errors in commands that
// exit with a task's status: 1, 3 and 75 must always come from the task, so
// these errors get 125. Usage errors and statuses from 124 on stay.
func WhileWaiting(err error) error {
	if _, ok := errors.AsType[ExitStatus](err); ok || err == nil {
		return err
	}
	f := *Explain(err)
	if f.Exit != 2 && f.Exit < 124 {
		f.Exit = 125
	}
	return &f
}

// Report writes an error to stderr as text, or as an object with --json. An
// ExitStatus prints nothing.
func Report(p *Printer, err error) {
	if _, ok := errors.AsType[ExitStatus](err); ok || err == nil {
		return
	}

	p.Flush()
	f := Explain(err)
	switch {
	case p.JSON:
		_ = WriteJSON(p.Stderr, NewRecord("error", ErrorRecord(f))) // nowhere to report a failed write to stderr
	case !f.Told:
		io.WriteString(p.Stderr, f.Text(p.Verbose))
	}
}

// ErrorRecord returns the error as a record.
func ErrorRecord(f *Error) Record {
	return NewRecord("code", f.Code, "message", f.What, "why", Known(strings.Join(f.Why, "\n")),
		"try", Known(f.Try), "exit", f.Exit)
}

// Text returns the lines for stderr. With verbose, they include the wrapped
// error.
func (f *Error) Text(verbose bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "runner: %s\n", humanize.Safe(f.What))
	for _, line := range f.Why {
		fmt.Fprintf(&b, "  %s\n", humanize.Safe(line))
	}

	if f.Try != "" {
		fmt.Fprintf(&b, "  try: %s\n", humanize.Safe(f.Try))
	}
	if verbose && f.Cause != nil && textOf(f.Cause) != f.What {
		fmt.Fprintf(&b, "  cause: %s\n", humanize.Safe(textOf(f.Cause)))
	}
	return b.String()
}

// textOf returns the text of an error. It replaces SQLite's "database is
// locked", which sounds like damage although another process is only writing.
func textOf(err error) string {
	return strings.ReplaceAll(err.Error(), "database is locked", "database is busy")
}
