package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/record"
	"example.com/runner/internal/taskflags"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func scheduleAddCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add a schedule, or change it",
		UsageText: `runner schedule add NAME --cron EXPR [OPTIONS] [--] COMMAND [ARG...]
runner schedule add NAME --cron EXPR [OPTIONS] --shell SCRIPT
runner schedule add NAME --cron EXPR [OPTIONS] --job JOB [--args JSON]`,
		Flags: append([]cli.Flag{
			cli.TextOption("cron", "EXPR", "when: five fields, @daily and its like, or @every 90s", ""),
			cli.TextOption("zone", "ZONE", "time zone of the fields, as in Europe/Berlin (the system's)", ""),
			cli.ChoiceOption("overlap", "at a tick while an earlier task is unfinished: skip the tick, allow both, or replace the "+
				"task (skip)",
				string(jobs.OverlapSkip), string(jobs.OverlapSkip), string(jobs.OverlapAllow), string(jobs.OverlapReplace)),
			cli.ChoiceOption("catch-up", "for ticks while no worker ran: one task for all of them, none, or one for each (one)",
				string(jobs.CatchUpOne), string(jobs.CatchUpOne), string(jobs.CatchUpSkip), string(jobs.CatchUpAll)),
			cli.DurationOption("catch-up-window", "--catch-up all: ticks no older than this, at most 100 (1d)", jobs.DefaultCatchUpWindow),
			cli.DurationOption("jitter", "start each task up to so much after its tick (0)", 0),
			cli.BoolOption("replace", "change the schedule of that name, keeping its history and its pause"),
		}, cli.Without(taskflags.Flags(a), taskflags.OfOneTask()...)...),
		Description: `The name goes to stdout, the next three ticks to stderr. The same definition
again changes nothing; another one needs --replace. Everything from the first
word after NAME on belongs to the command, which is looked up now.

EXPR is cron's: minute, hour, day of month, month, day of week; lists, ranges,
steps, names (jan, MON). Day of month and day of week both set: either matches.
@hourly @daily @weekly @monthly @yearly, and @every 90s.

When the clock changes: with a fixed hour (3, 1-5) a tick that is skipped runs
at the first minute that exists, and one that comes twice runs once. With * or
*/n as hour, ticks follow real time.

A tick that is noticed within a minute was not missed. An earlier task that is
to be replaced ends before the new one starts.

EXAMPLES
  runner schedule add backup --cron '0 3 * * *' -- backup.sh --full
  runner schedule add feed --cron '@every 90s' --timeout 1m -- fetch-feeds
  runner schedule add report --cron '0 6 * * MON' --zone Europe/Berlin \
    --expires-in 2h --job report.weekly --args '{"days":7}'

EXIT STATUS
  0   the schedule is in the database as it was typed
  1   the command was not found, or the schedule is there and differs
  2   wrong usage: nothing was changed
  75  database busy, or disk full: nothing was changed, safe to try again`,
		Action: cli.Action(a, true, readScheduleAddOptions, runScheduleAdd),
	}
}

type scheduleAddOptions struct {
	schedule jobs.Schedule
	replace  bool
}

func readScheduleAddOptions(c *cli.Context, a *cli.App) (o scheduleAddOptions, err error) {
	words := c.Args().Slice()
	if len(words) == 0 {
		return o, failure.Usage("schedule add needs a name").Hint("%s -- backup.sh", taskflags.Example(c))
	}
	name, err := cli.ParseScheduleName(words[0])
	if err != nil {
		return o, failure.Usage("%q: %v", words[0], err)
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "--" { // the parser leaves a -- that follows NAME
		words = words[1:]
	}
	if !c.IsSet("cron") {
		return o, failure.Usage("schedule add needs --cron").Hint("%s -- backup.sh", taskflags.Example(c))
	}
	task, err := taskflags.Read(c, a, words)
	if err != nil {
		return o, err
	}
	zone := cli.Get[string](c, "zone")
	if !c.IsSet("zone") {
		if zone, err = invocation.Zone(a.Getenv); err != nil {
			return o, err
		}
	}
	s := jobs.Schedule{Name: name, Cron: strings.Join(strings.Fields(cli.Get[string](c, "cron")), " "), Zone: zone, Spec: task.Spec,
		Overlap: jobs.Overlap(cli.Get[string](c, "overlap")), CatchUp: jobs.CatchUp(cli.Get[string](c, "catch-up")),
		CatchUpWindow: cli.Get[time.Duration](c, "catch-up-window"), Jitter: cli.Get[time.Duration](c, "jitter")}
	switch {
	case c.IsSet("catch-up-window") && s.CatchUp != jobs.CatchUpAll:
		return o, failure.Usage("--catch-up-window goes with --catch-up all")
	case s.CatchUpWindow == 0:
		return o, failure.Usage("--catch-up-window 0: no tick would be caught up").Hint("--catch-up skip")
	}
	return scheduleAddOptions{schedule: s, replace: cli.Get[bool](c, "replace")}, nil
}

func runScheduleAdd(ctx context.Context, r *runner.Runner, p *term.Printer, o scheduleAddOptions) error {
	done, err := r.ApplySchedules(ctx, []jobs.Schedule{o.schedule}, runner.ApplyOptions{Keep: !o.replace})
	if bad, ok := errors.AsType[*runner.SpecError](err); ok {
		err = bad.Err
	}
	if err != nil {
		return err
	}
	s := done[0].Schedule
	if p.JSON {
		return p.Record(record.NewSchedule(s, false))
	}
	p.Print(s.Name + "\n")
	if !s.PausedAt.IsZero() {
		p.Say("paused: runner schedule resume %s", s.Name)
		return nil
	}
	next, err := r.NextTicks(s, 3)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return err
	}
	for i, tick := range next {
		p.Say("%s %s   in %s", []string{"next", "then"}[min(i, 1)], tick.In(zone).Format("Mon 2006-01-02 15:04:05 MST"),
			humanize.Age(tick.Sub(p.Now())))
	}
	workers, err := r.Workers(ctx)
	if err == nil && len(workers) == 0 {
		p.Note("no worker is running on this database")
	}
	return err
}
