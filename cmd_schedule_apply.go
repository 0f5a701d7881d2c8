package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func scheduleApplyCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "make schedules what a file says", UsageText: "runner schedule apply FILE|- [--prune] [--dry-run]",
		Flags: []cli.Flag{cli.BoolOption("prune", "remove the schedules that are not in the file"), cli.DryRunOption()},
		Description: `FILE has JSON Lines as "runner schedule list --json" prints them, one per
schedule: name, cron and task are needed, null or a missing key is the default.
It is one transaction: a bad line is named, and then nothing is changed. The
same file again changes nothing.

A schedule that is new and "paused" comes paused; one that is there keeps its
pause and its history. Keys that say what happened (next_at, last_*, skipped)
are passed over. Lines with hidden env or input are refused: export with
--reveal.

Prints a line per schedule: its name, and added, changed, unchanged or removed.
In a pipe with a tab between.

EXIT STATUS
  0   the schedules are as the file says
  1   a line is wrong, or no database: nothing was changed
  2   wrong usage
  75  the database is busy, or the disk is full`,
		Action: func(c *cli.Context) error {
			f, err := readScheduleFile(c, a, "nothing was changed")
			if err != nil {
				return err
			}
			if err := f.ReadLines(a.Getenv); err != nil {
				return err
			}
			how := runner.ApplyOptions{Prune: cli.Get[bool](c, "prune"), DryRun: cli.Get[bool](c, "dry-run")}
			if len(f.Schedules) == 0 && how.Prune {
				return failure.Usage("%s has no schedule, so --prune would remove all schedules", f.Name).
					Hint("runner schedule remove NAME...")
			}
			return applySchedules(c, a, f, how)
		},
	}
}

func scheduleImportCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "take over a crontab", UsageText: "runner schedule import FILE|- [--prefix TEXT] [--dry-run]",
		Flags: []cli.Flag{cli.TextOption("prefix", "TEXT", "in front of each name", ""), cli.DryRunOption()},
		Description: `FILE is a user's crontab, as "crontab -l" prints it. Environment lines hold for
the entries below them, SHELL runs the commands, CRON_TZ is the zone of the
times, RANDOM_DELAY becomes --jitter, and % ends a command and begins its
input, as in cron. Commands run in the home directory. MAILTO is not obeyed: a
note says what to use instead. What cannot be kept is refused by its line, and
then nothing is imported.

Names are made from the commands; the same file again changes nothing. A
schedule that is there and differs is not overwritten.

EXAMPLES
  crontab -l | runner schedule import - --dry-run
  crontab -l | runner schedule import - && crontab -r

EXIT STATUS
  0   every entry is a schedule
  1   a line is refused, or no database: nothing was changed
  2   wrong usage
  75  the database is busy, or the disk is full`,
		Action: func(c *cli.Context) error {
			f, err := readScheduleFile(c, a, "nothing was imported")
			if err != nil {
				return err
			}
			prefix := cli.Get[string](c, "prefix")
			if prefix != "" && jobs.ValidSchedule(prefix) != nil {
				return failure.Usage("--prefix %q: invalid prefix; use a letter or digit, then A-Z a-z 0-9 . _ -", prefix)
			}
			if err := f.ReadCrontab(a.Getenv, prefix); err != nil {
				return err
			}
			return applySchedules(c, a, f, runner.ApplyOptions{Keep: true, DryRun: cli.Get[bool](c, "dry-run")})
		},
	}
}

// readScheduleFile reads the file that the only argument names. unchanged says in errors that the database is unchanged.
func readScheduleFile(c *cli.Context, a *cli.App, unchanged string) (*batch.ScheduleFile, error) {
	verb, words := c.Command.Name, c.Args().Slice()
	switch {
	case len(words) == 0:
		return nil, failure.Usage("schedule %s needs a file, or - for stdin", verb).Hint("runner schedule %s FILE", verb)
	case len(words) > 1:
		return nil, failure.Usage("schedule %s takes one file; unexpected argument %q", verb, words[1])
	}
	return batch.ReadScheduleFile(words[0], a.Stdin, unchanged)
}

// applySchedules applies a file and prints the outcome for each schedule.
func applySchedules(c *cli.Context, a *cli.App, f *batch.ScheduleFile, how runner.ApplyOptions) error {
	r, err := a.Open(c, !how.DryRun, runner.Options{})
	if how.DryRun && errors.Is(err, jobs.ErrNoDatabase) { // use an empty temporary database
		dir, tempErr := os.MkdirTemp("", "runner-")
		if tempErr != nil {
			return tempErr
		}
		defer func() { _ = os.RemoveAll(dir) }()
		r, err = runner.Open(c.Context, filepath.Join(dir, "dry.db"), runner.Options{})
	}
	if err != nil {
		return err
	}
	defer r.Close()
	done, err := r.ApplySchedules(c.Context, f.Schedules, how)
	if err != nil {
		return f.Explain(err)
	}
	if err := printApplied(a.Printer, done); err != nil {
		return err
	}
	for _, note := range f.Notes {
		a.Printer.Say("%s", note)
	}
	if how.DryRun {
		a.Printer.Note("%s", f.Unchanged)
	}
	return nil
}

// printApplied prints what apply or import did to each schedule.
func printApplied(p *term.Printer, done []runner.Applied) (err error) {
	width := 0
	for _, one := range done {
		width = max(width, len(one.Schedule.Name))
	}
	for _, one := range done {
		switch {
		case p.JSON && one.Did == runner.ScheduleRemoved:
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
