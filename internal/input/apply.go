package input

import (
	"fmt"

	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

// PrintApplied prints what happened to each schedule of a file.
func PrintApplied(p *ui.Printer, done []runner.Applied) error {
	width := 0
	for _, one := range done {
		width = max(width, len(one.Schedule.Name))
	}

	for _, one := range done {
		r := ui.NewAppliedSchedule(one.Schedule, p.Now(), one.Did)
		if one.Did == "removed" {
			r = ui.RemovedSchedule(one.Schedule.Name)
		}
		err := p.Answer(r, fmt.Sprintf("%-*s%s%s\n", width, one.Schedule.Name, ui.Gap, one.Did), one.Schedule.Name, one.Did)
		if err != nil {
			return err
		}
	}

	return nil
}
