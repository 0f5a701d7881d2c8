package input

import (
	"fmt"

	"example.com/runner/internal/ui"
	"example.com/runner/runner/admin"
)

// PrintApplied prints what happened to each schedule of a file.
func PrintApplied(p *ui.Printer, done []admin.Applied) error {
	width := 0
	for _, one := range done {
		width = max(width, len(one.Schedule.Name))
	}

	for _, one := range done {
		did := string(one.Did)
		r := ui.NewAppliedSchedule(one.Schedule, p.Now(), did)
		if one.Did == admin.ScheduleRemoved {
			r = ui.RemovedSchedule(one.Schedule.Name)
		}
		err := p.Answer(r, fmt.Sprintf("%-*s%s%s\n", width, one.Schedule.Name, ui.Gap, did), one.Schedule.Name, did)
		if err != nil {
			return err
		}
	}

	return nil
}
