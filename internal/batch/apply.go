package batch

import (
	"fmt"

	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

// PrintApplied prints what the command "schedule apply" or "schedule import" did to each schedule.
func PrintApplied(p *term.Printer, done []runner.Applied) error {
	width := 0
	for _, one := range done {
		width = max(width, len(one.Schedule.Name))
	}
	for _, one := range done {
		r := record.NewAppliedSchedule(one.Schedule, one.Did)
		if one.Did == "removed" {
			r = record.RemovedSchedule(one.Schedule.Name)
		}
		err := p.Answer(r, fmt.Sprintf("%-*s%s%s\n", width, one.Schedule.Name, term.Gap, one.Did), one.Schedule.Name, one.Did)
		if err != nil {
			return err
		}
	}
	return nil
}
