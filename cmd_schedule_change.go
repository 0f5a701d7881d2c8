package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func scheduleRunCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "enqueue a task of a schedule now", UsageText: "runner schedule run NAME",
		Description: `Even when the schedule is paused, or an earlier task of it is unfinished. The
id goes to stdout.

EXIT STATUS
  0   the task is on the disk
  1   no database
  2   wrong usage
  3   no schedule of that name
  75  database busy, or disk full: nothing was enqueued`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) (string, error) { return readScheduleName(c, "run") },
			runScheduleRun),
	}
}

func runScheduleRun(ctx context.Context, r *runner.Runner, p *term.Printer, name string) error {
	t, err := r.RunSchedule(ctx, name)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.Record(record.NewTask(t, p.Now()))
	}
	p.Print(strconv.FormatInt(t.ID, 10) + "\n")
	p.Note("follow: runner logs -f %d", t.ID)
	return nil
}

func schedulePauseCommand(a *cli.App) *cli.Command {
	return scheduleChangeCommand(a, "pause", "stop a schedule for a while",
		`Its ticks pass and are not caught up. Tasks that are there already go on.
Survives restarts.`, scheduleChange{do: (*runner.Runner).PauseSchedule, word: "paused"})
}

func scheduleResumeCommand(a *cli.App) *cli.Command {
	return scheduleChangeCommand(a, "resume", "let it tick again", "It goes on with the first tick to come.",
		scheduleChange{do: (*runner.Runner).ResumeSchedule, word: "running"})
}

func scheduleRemoveCommand(a *cli.App) *cli.Command {
	return scheduleChangeCommand(a, "remove", "forget a schedule; its tasks stay", "Its tasks stay, those that wait too.",
		scheduleChange{do: (*runner.Runner).RemoveSchedule, word: "removed", gone: true})
}

// scheduleChange is a command that changes schedules by name.
type scheduleChange struct {
	do   func(*runner.Runner, context.Context, string) error
	word string // state of the schedule afterwards
	gone bool
}

func scheduleChangeCommand(a *cli.App, name, usageText, about string, change scheduleChange) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usageText, UsageText: "runner schedule " + name + " NAME...",
		Description: about + `
Prints a line per schedule: its name, and ` + change.word + `. In a pipe with a tab between.

EXIT STATUS
  0   done, or it was so already
  1   no database
  2   wrong usage; nothing was changed
  3   one of the names does not exist; the others are done
  75  the database is busy, or the disk is full`,
		Action: cli.Action(a, false, readScheduleNames, func(ctx context.Context, r *runner.Runner, p *term.Printer, names []string) error {
			return runScheduleChange(ctx, r, p, names, change)
		}),
	}
}

func runScheduleChange(ctx context.Context, r *runner.Runner, p *term.Printer, names []string, change scheduleChange) error {
	var missing []string
	for _, name := range names {
		err := change.do(r, ctx, name)
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			missing = append(missing, name)
			continue
		case err != nil:
			return err
		case !p.JSON && p.Stdout.TTY:
			p.Print(name + term.Gap + change.word + "\n")
		case !p.JSON:
			p.Fields(name, change.word)
		case change.gone:
			err = p.Record(record.Removed{Name: name, Removed: true})
		default:
			var s jobs.Schedule
			if s, err = r.GetSchedule(ctx, name); err == nil {
				err = p.Record(record.NewSchedule(s, false))
			}
		}
		if err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure.NotFound("runner schedule list", "no schedule %s", strings.Join(missing, ", "))
}
