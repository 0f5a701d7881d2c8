package ui

import (
	"example.com/runner/jobs"
)

// PrintEnd prints a finished task: its record with --json, or only its result.
func PrintEnd(p *Printer, t jobs.Task, result bool, r Record) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case result:
		return WriteJSON(p, Raw(t.Result))
	}
	return p.Only(r)
}
