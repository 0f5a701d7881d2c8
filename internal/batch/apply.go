package batch

import (
	"context"
	"fmt"

	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

// FindRefused asks the database which schedules it would reject, and removes them from f. If skip is false and there are such schedules, it
// returns an error, because the import must not go on.
func (f *ScheduleFile) FindRefused(ctx context.Context, r *runner.Runner, how runner.ApplyOptions, skip bool) error {
	how.DryRun = true
	for {
		_, err := r.ApplySchedules(ctx, f.Schedules, how)
		if err == nil {
			break
		}
		if !f.Refuse(err) {
			return err
		}
	}
	if skip && f.MaySkip() {
		return nil
	}
	return f.Refused(false)
}

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
