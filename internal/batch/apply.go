package batch

import (
	"context"
	"strings"

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
func PrintApplied(p *term.Printer, done []runner.Applied) (err error) {
	width := 0
	for _, one := range done {
		width = max(width, len(one.Schedule.Name))
	}
	for _, one := range done {
		switch {
		case p.JSON && one.Did == "removed":
			err = p.Record(record.Removed{Name: one.Schedule.Name, Removed: true})
		case p.JSON:
			err = p.Record(record.AppliedSchedule{Schedule: record.NewSchedule(one.Schedule, false), Applied: one.Did})
		case p.Stdout.TTY:
			p.Print(one.Schedule.Name + strings.Repeat(" ", width-len(one.Schedule.Name)) + term.Gap + one.Did + "\n")
		default:
			p.Fields(one.Schedule.Name, one.Did)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
