package main

import (
	"errors"
	"os"
	"path/filepath"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/input"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func scheduleApplyCommand(a *cli.App) *cli.Command {
	var how admin.ApplyOptions
	return &cli.Command{
		Name: "apply", Usage: "add and change schedules from a file", UsageText: "runner schedule apply FILE|- [--prune] [--dry-run]",
		Flags: []cli.Flag{
			cli.Bool(&how.Prune, "prune", "remove the schedules that are not in the file"),
			cli.DryRunOption(&how.DryRun),
		},
		Description: `EXAMPLES
  runner schedule list --json --reveal >schedules.jsonl
  runner schedule apply schedules.jsonl --dry-run
  runner schedule apply schedules.jsonl --prune

schedule apply adds and changes schedules so that they match FILE. FILE has the
format of schedule list --json: JSON Lines, with a line for each schedule. The
keys name, cron and task are required; a missing key or null means the default.
apply is one transaction: if a line is invalid, apply names it and changes
nothing. If you apply the same file again, nothing changes.

A new schedule with "paused" starts paused. An existing schedule keeps its pause
and its history. apply ignores the keys that report history (next_at, last_*,
skipped). apply rejects lines whose variables or input are hidden: use schedule
list --reveal to write FILE.

apply prints a line for each schedule: its name and the word added, changed,
unchanged or removed. In a pipe, a tab separates the name and the word.`,
		Action: func(c *cli.Context) error {
			f, err := readScheduleFile(c, a, "nothing was changed")
			if err != nil {
				return err
			}
			if err := f.ReadLines(a.Getenv); err != nil {
				return err
			}
			if len(f.Schedules) == 0 && how.Prune {
				return ui.Usage("%s has no schedule, so --prune would remove all schedules", f.Name).
					Hint("runner schedule remove NAME...")
			}

			return applySchedules(c, a, f, how)
		},
	}
}

func scheduleImportCommand(a *cli.App) *cli.Command {
	var prefix string
	var system, update, dryRun bool
	return &cli.Command{
		Name: "import", Usage: "add the entries of a crontab",
		UsageText: "runner schedule import FILE|- [--system] [--update] [--prefix TEXT]\n" +
			"[--dry-run]",
		Flags: []cli.Flag{
			cli.Text(&prefix, "prefix", "TEXT", "text to put before the name of each schedule"),
			cli.Bool(&system, "system", "FILE has a column for the user, as /etc/crontab has"),
			cli.Bool(&update, "update", "change existing schedules that differ"),
			cli.DryRunOption(&dryRun),
		},
		Description: `EXAMPLES
  crontab -l | runner schedule import - --dry-run
  crontab -l | runner schedule import - && crontab -r
  runner schedule import /etc/crontab --system

FILE is the crontab of a user, as crontab -l prints it. Environment lines apply
to the entries below them. SHELL sets the shell of the commands, CRON_TZ sets
the time zone, and RANDOM_DELAY becomes --jitter. As in cron, the first % ends a
command, and the text after it is the input of the command. Commands run in the
home directory of the user. MAILTO becomes a hook (--on-output) that mails the
end of the output with sendmail. Some lines of cron have no equivalent in
runner. import names all these lines and imports nothing.

With --system the sixth field of an entry is a user. Root imports the entries of
all users, with --user; the worker must then run as root. Others import only
their own entries.

import names each schedule after its command. If you import the same file again,
nothing changes. import does not overwrite an existing schedule that differs,
except with --update. It removes no schedule whose line is gone.`,
		Action: func(c *cli.Context) error {
			f, err := readScheduleFile(c, a, "nothing was imported")
			if err != nil {
				return err
			}
			if prefix != "" && taskspec.ValidSchedule(prefix) != nil {
				return ui.Usage("--prefix %q: invalid prefix; use a letter or digit, then A-Z a-z 0-9 . _ -", prefix)
			}
			if err := f.ReadCrontab(a.Getenv, prefix, system); err != nil {
				return err
			}
			return applySchedules(c, a, f, admin.ApplyOptions{Keep: !update, DryRun: dryRun})
		},
	}
}

// readScheduleFile reads the file that the argument names. Errors in it end
// with the text unchanged, such as "nothing was changed".
func readScheduleFile(c *cli.Context, a *cli.App, unchanged string) (*input.ScheduleFile, error) {
	verb, words := c.Command.Name, c.Args().Slice()
	switch {
	case len(words) == 0:
		return nil, ui.Usage("schedule %s needs a file, or - for stdin", verb).Hint("runner schedule %s FILE", verb)
	case len(words) > 1:
		return nil, ui.Usage("schedule %s takes one file; unexpected argument %q", verb, words[1])
	}

	return input.ReadScheduleFile(words[0], a.Stdin, unchanged)
}

// applySchedules applies a file and prints the outcome for each schedule.
func applySchedules(c *cli.Context, a *cli.App, f *input.ScheduleFile, how admin.ApplyOptions) error {
	how.DryRun = how.DryRun || f.IsInvalid()
	create := !how.DryRun
	r, err := a.Open(c, create, runner.Options{})
	if !create && errors.Is(err, jobs.ErrNoDatabase) { // compare the file with an empty temporary database
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

	done, err := admin.ApplySchedules(c.Context, r, f.Schedules, how)
	if err := f.Failure(err); err != nil {
		return err
	}
	if err := input.PrintApplied(a.Printer, done); err != nil {
		return err
	}
	if how.DryRun {
		a.Printer.Note("%s", f.Unchanged)
	}

	return nil
}
