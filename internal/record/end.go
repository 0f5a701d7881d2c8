package record

import (
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// PrintEnd prints a finished task: its JSON record, or only its result.
func PrintEnd(p *term.Printer, t jobs.Task, result bool) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case p.JSON:
		return p.Record(NewTask(t, p.Now()))
	case result:
		return term.WriteJSON(p, term.Raw(t.Result))
	}
	return nil
}
