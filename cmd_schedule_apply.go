package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/crontab"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// applyMost is the largest size of a file of schedules, in bytes.
const applyMost = 64 << 20

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
			o, err := readScheduleFile(c, a, "apply")
			if err != nil {
				return err
			}
			o.how = runner.ApplyOptions{Prune: cli.Get[bool](c, "prune"), DryRun: cli.Get[bool](c, "dry-run")}
			if o.schedules, o.lines, err = readScheduleLines(o, a); err != nil {
				return err
			}
			if len(o.schedules) == 0 && o.how.Prune {
				return failure.Usage("%s holds no schedule: --prune would remove all of them",
					o.name).Hint("runner schedule remove NAME...")
			}
			return applySchedules(c, a, o)
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
			o, err := readScheduleFile(c, a, "import")
			if err != nil {
				return err
			}
			o.how = runner.ApplyOptions{Keep: true, DryRun: cli.Get[bool](c, "dry-run")}
			prefix := cli.Get[string](c, "prefix")
			if prefix != "" && jobs.ValidSchedule(prefix) != nil {
				return failure.Usage("--prefix %q: names begin with a letter or digit, and have A-Z a-z 0-9 . _ -", prefix)
			}
			if err := readCrontab(&o, a, prefix); err != nil {
				return err
			}
			return applySchedules(c, a, o)
		},
	}
}

type scheduleFile struct {
	name      string // name of the file
	text      []byte
	how       runner.ApplyOptions
	schedules []jobs.Schedule
	lines     []int  // line number of each schedule
	nothing   string // sentence for errors: the database is unchanged
	notes     []string
}

// readScheduleFile reads the file that the only argument names.
func readScheduleFile(c *cli.Context, a *cli.App, verb string) (o scheduleFile, err error) {
	o.nothing = map[string]string{"apply": "nothing was changed", "import": "nothing was imported"}[verb]
	words := c.Args().Slice()
	switch {
	case len(words) == 0:
		return o, failure.Usage("schedule %s needs a file, or - for stdin", verb).Hint("runner schedule %s FILE", verb)
	case len(words) > 1:
		return o, failure.Usage("schedule %s takes one file: %q is left over", verb, words[1])
	}
	o.name = words[0]
	in := a.Stdin
	if o.name == "-" {
		o.name = "stdin"
	} else {
		file, err := os.Open(o.name)
		if err != nil {
			return o, failure.Usage("%q: %v", o.name, invocation.ReasonOf(err))
		}
		defer file.Close()
		in = file
	}
	o.text, err = io.ReadAll(io.LimitReader(in, applyMost+1))
	switch {
	case err != nil:
		return o, failure.Usage("%q: %v", o.name, invocation.ReasonOf(err))
	case len(o.text) > applyMost:
		return o, failure.Usage("%q is too large: at most %s", o.name, humanize.ExactSize(applyMost))
	}
	return o, nil
}

// readScheduleLines parses the file as JSON Lines.
func readScheduleLines(o scheduleFile, a *cli.App) (list []jobs.Schedule, lines []int, err error) {
	caller, err := invocation.Current(a.Getenv)
	if err != nil {
		return nil, nil, err
	}
	zone, zoneErr := invocation.Zone(a.Getenv)
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(o.text, []byte("\ufeff"))) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		s, err := batch.ReadSchedule(line, caller)
		if err == nil && s.Zone == "" {
			s.Zone, err = zone, zoneErr
		}
		if err != nil {
			return nil, nil, (&batch.LineError{File: o.name, Line: n, Err: err}).Failure(o.nothing)
		}
		list, lines = append(list, s), append(lines, n)
	}
	return list, lines, nil
}

func readCrontab(o *scheduleFile, a *cli.App, prefix string) error {
	home := a.Getenv("HOME")
	if home == "" {
		return failure.Usage("where do the commands run? HOME is not set").Hint("HOME=/home/ann runner schedule import ...")
	}
	zone, err := invocation.Zone(a.Getenv)
	if err != nil {
		return err
	}
	tab, err := crontab.Parse(string(o.text), crontab.Options{Zone: zone, Home: home, Prefix: prefix})
	if bad, ok := errors.AsType[*crontab.LineError](err); ok {
		return (&batch.LineError{File: o.name, Line: bad.Line, Err: bad.Err}).Failure(o.nothing)
	}
	if err != nil {
		return err
	}
	o.schedules, o.lines = tab.Schedules, tab.Lines
	if tab.MailLine > 0 {
		o.notes = append(o.notes, (&batch.LineError{File: o.name, Line: tab.MailLine, Err: errMailTo}).Error())
	}
	return nil
}

var errMailTo = errors.New("MAILTO is not kept: nobody gets mail; to be told of failures: runner work --on-failure CMD")

// applySchedules applies a file and prints the outcome for each schedule.
func applySchedules(c *cli.Context, a *cli.App, o scheduleFile) error {
	r, err := a.Open(c, !o.how.DryRun, runner.Options{})
	if o.how.DryRun && errors.Is(err, jobs.ErrNoDatabase) { // use an empty temporary database
		dir, temporary := os.MkdirTemp("", "runner-")
		if temporary != nil {
			return temporary
		}
		defer func() { _ = os.RemoveAll(dir) }()
		r, err = runner.Open(c.Context, filepath.Join(dir, "dry.db"), runner.Options{})
	}
	if err != nil {
		return err
	}
	defer r.Close()
	return runScheduleApply(c.Context, r, a.Printer, o)
}

func runScheduleApply(ctx context.Context, r *runner.Runner, p *term.Printer, o scheduleFile) error {
	done, err := r.ApplySchedules(ctx, o.schedules, o.how)
	if bad, ok := errors.AsType[*runner.SpecError](err); ok {
		f := (&batch.LineError{File: o.name, Line: o.lines[bad.Index], Err: bad.Err}).Failure()
		if errors.Is(bad.Err, jobs.ErrConflict) {
			f = (&batch.LineError{File: o.name, Line: o.lines[bad.Index], Err: failure.Explain(bad.Err)}).Failure()
			f.Hint("runner schedule remove %s, or --prefix", o.schedules[bad.Index].Name)
		}
		return f.Because(o.nothing)
	}
	if err != nil {
		return err
	}
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
	for _, note := range o.notes {
		p.Say("%s", note)
	}
	if o.how.DryRun {
		p.Note("%s", o.nothing)
	}
	return nil
}
