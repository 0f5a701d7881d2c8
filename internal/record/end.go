package record

import (
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// PrintEnd prints a finished task: its record with --json, or only its result.
func PrintEnd(p *term.Printer, t jobs.Task, result bool, r term.Record) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case result:
		return term.WriteJSON(p, term.Raw(t.Result))
	}
	return p.Only(r)
}
