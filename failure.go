package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// failure is an error for the person who typed the command: what happened, why, and what to try. All three are lower case
// and without a full stop. Any other error is turned into one by explain.
type failure struct {
	code string   // a word of cli.md 7.4: usage, not_found, busy, …
	exit int      // the exit status
	what string   // one line
	why  []string // more lines, if they help
	try  string   // a command to type, or a thing to change
	err  error    // the cause; -v shows it
}

func (f *failure) Error() string { return strings.Join(append([]string{f.what}, f.why...), "; ") }
func (f *failure) Unwrap() error { return f.err }

// usage makes the failure of a command line that cannot be: exit 2, nothing was touched.
func usage(format string, args ...any) *failure {
	return &failure{code: "usage", exit: 2, what: fmt.Sprintf(format, args...)}
}

// because adds lines of explanation.
func (f *failure) because(lines ...string) *failure { f.why = append(f.why, lines...); return f }

// hint sets what to try.
func (f *failure) hint(format string, args ...any) *failure {
	f.try = fmt.Sprintf(format, args...)
	return f
}

// exitStatus ends the program with a status and no word of ours: the task's own, or 128+n after signal n.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitCode maps an error to the exit status of the program (cli.md 8).
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	return explain(err).exit
}

// explain turns any error into a failure. It is the only place that knows the errors of jobs by their meaning for a shell.
func explain(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: "internal", exit: 1, what: chain(err)[0], err: err}
	switch {
	case errors.Is(err, jobs.ErrInvalid):
		f.code, f.exit = "usage", 2
	case errors.Is(err, jobs.ErrNotFound):
		f.code, f.exit = "not_found", 3
	case errors.Is(err, jobs.ErrBusy):
		f.code, f.exit = "busy", 75
	case errors.Is(err, jobs.ErrFull):
		f.code, f.exit = "full", 75
	case errors.Is(err, jobs.ErrConflict), errors.Is(err, jobs.ErrLost), errors.Is(err, jobs.ErrCancelled):
		f.code = "conflict"
	case errors.Is(err, jobs.ErrCorrupt):
		f.code = "corrupt"
	case errors.Is(err, jobs.ErrReplaced):
		f.code = "replaced"
	case errors.Is(err, jobs.ErrNoDatabase):
		f.code = "no_database"
	case errors.Is(err, jobs.ErrPermission):
		f.code = "permission"
	case errors.Is(err, jobs.ErrSchema):
		f.code = "schema"
	}
	if p, ok := errors.AsType[*jobs.Error](err); ok {
		why, try := present.Advice(p)
		f.what, f.why, f.try, f.err = p.What, slices.Concat(p.Why, why), try, cmp.Or(p.Err, err)
	} else if p, ok := errors.AsType[*jobs.FieldError](err); ok {
		f.what = fmt.Sprintf("--%s: %s", strings.ReplaceAll(p.Field, "_", "-"), p.Msg)
	}
	return f
}

// whileWaiting is for wait and enqueue --wait, whose exit status is the task's: every failure of ours but usage becomes 125,
// so that a task's own 1, 3 or 75 is never in doubt. 126 and 127 keep their meaning.
func whileWaiting(err error) error {
	if _, ok := errors.AsType[exitStatus](err); ok || err == nil {
		return err
	}
	f := *explain(err)
	if f.exit != 2 && f.exit < 124 {
		f.exit = 125
	}
	return &f
}

// report writes an error to stderr: as text, or with --json as an object. It writes nothing for an exitStatus.
func report(p *term.Printer, err error) {
	if _, ok := err.(exitStatus); ok || err == nil {
		return
	}
	p.Flush()
	f := explain(err)
	if p.JSON {
		_ = term.WriteJSON(p.Stderr, f.record()) // an error of stderr cannot be reported anywhere
		return
	}
	io.WriteString(p.Stderr, f.text(p.Verbose))
}

// errorRecord is what --json prints on stderr instead of a failure's text.
type errorRecord struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Why     *string `json:"why"`
	Try     *string `json:"try"`
	Exit    int     `json:"exit"`
}

func (f *failure) record() errorRecord {
	body := errorBody{Code: f.code, Message: f.what, Exit: f.exit}
	if why := strings.Join(f.why, "\n"); why != "" {
		body.Why = &why
	}
	if f.try != "" {
		body.Try = &f.try
	}
	return errorRecord{Error: body}
}

// text is the failure as lines for stderr; with verbose, the chain of causes too.
func (f *failure) text(verbose bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "runner: %s\n", humanize.Safe(f.what))
	for _, line := range f.why {
		fmt.Fprintf(&b, "  %s\n", humanize.Safe(line))
	}
	if f.try != "" {
		fmt.Fprintf(&b, "  try: %s\n", humanize.Safe(f.try))
	}
	if verbose {
		for _, cause := range chain(f.err) {
			if cause != f.what {
				fmt.Fprintf(&b, "  cause: %s\n", humanize.Safe(cause))
			}
		}
	}
	return b.String()
}

// chain lists the texts of an error and of what it wraps, outermost first. SQLite's own "database is locked" is shown to
// nobody: people read it as "call an expert", and it means "try again".
func chain(err error) []string {
	var list []string
	for err != nil {
		text := strings.ReplaceAll(err.Error(), "database is locked", "database is busy")
		if len(list) == 0 || list[len(list)-1] != text {
			list = append(list, text)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				list = append(list, chain(one)...)
			}
			return list
		default:
			return list
		}
	}
	return list
}
