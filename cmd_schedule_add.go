package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func scheduleAddCommand(a *cli.App) *cli.Command {
	var o scheduleAddOptions
	s := &o.schedule
	s.Overlap, s.CatchUp, s.CatchUpWindow = jobs.OverlapSkip, jobs.CatchUpOne, 24*time.Hour
	return &cli.Command{
		Name: "add", Usage: "add or change a schedule",
		UsageText: `runner schedule add NAME --cron EXPR [OPTIONS] [--] COMMAND [ARG...]
runner schedule add NAME --cron EXPR [OPTIONS] --shell SCRIPT
runner schedule add NAME --cron EXPR [OPTIONS] --job JOB [--args JSON]`,
		Flags: append([]cli.Flag{
			cli.Text(&s.Cron, "cron", "EXPR", "times of the ticks: five cron fields, @daily, @every 90s or @reboot"),
			cli.Text(&s.Zone, "zone", "ZONE", "time zone of the cron fields, such as Europe/Berlin").
				Default("the zone of the system"),
			cli.Choice(&s.Overlap, "overlap",
				"if the last task is unfinished at a tick: skip the tick, allow both tasks, or replace the old task",
				jobs.OverlapSkip, jobs.OverlapAllow, jobs.OverlapReplace).Default("skip"),
			cli.Choice(&s.CatchUp, "catch-up",
				"for missed ticks: add one task for all of them, no task, or a task for each tick",
				jobs.CatchUpOne, jobs.CatchUpSkip, jobs.CatchUpAll).Default("one"),
			cli.Duration(&s.CatchUpWindow, "catch-up-window",
				"with --catch-up all: ignore missed ticks that are older than this").Default("1d"),
			cli.Duration(&s.Jitter, "jitter", "delay each task by a random time of at most DUR after its tick"),
			cli.Duration(&s.AlertAfter, "alert-after",
				"raise an alert and run --on-failure if no task completes for this time").Default("never"),
			cli.Bool(&o.replace, "replace", "if the schedule exists, replace its definition; keep its history and its pause"),
		}, cli.Without(o.task.Options(a), cli.OfOneTask()...)...),
		Description: `EXAMPLES
  runner schedule add backup --cron '0 3 * * *' -- backup.sh --full
  runner schedule add feed --cron '@every 90s' --timeout 1m -- fetch-feeds
  runner schedule add report --cron '0 6 * * MON' --zone Europe/Berlin \
    --expires-in 2h --job report.weekly --args '{"days":7}'

schedule add prints the name on stdout and the next three ticks on stderr. If
the schedule exists with the same definition, schedule add does nothing. If the
schedule exists with another definition, schedule add fails, unless --replace is
set. The command begins at the first word after NAME; schedule add looks up the
program now.

EXPR has the fields of cron: minute, hour, day of month, month, day of week. A
field can have lists, ranges, steps and names (jan, MON). If both the day of
month and the day of week are set, a day that matches one of them is enough.
EXPR can also be @hourly, @daily, @weekly, @monthly, @yearly, @every 90s or
@reboot. @reboot ticks when the first worker starts after the machine has booted
(Linux).

When daylight saving time begins, the clock skips some times. A tick at a
skipped time comes at the first minute after the skipped times. When daylight
saving time ends, the clock shows some times twice. A tick at a repeated time
comes only once. But if the hour field is * or */n, there is no tick at a
skipped time, and there are two ticks at a repeated time.

A tick counts as missed if workers notice it more than a minute late.
With --overlap replace, the old task is cancelled and ends before the new task
starts.`,
		Action: a.Creates(o.read, o.run),
	}
}

type scheduleAddOptions struct {
	task     cli.TaskFlags
	service  string // database of this machine's service, which may be the one that the user meant
	schedule jobs.Schedule
	replace  bool
}

func (o *scheduleAddOptions) read(c *cli.Context, a *cli.App) (err error) {
	s, words := &o.schedule, c.Args().Slice()
	if len(words) == 0 {
		return ui.Usage("schedule add needs a name").Hint("%s -- backup.sh", cli.Example(c))
	}
	if s.Name, err = cli.ParseScheduleName(words[0]); err != nil {
		return ui.Usage("%q: %v", words[0], err)
	}
	if !c.IsSet("cron") {
		return ui.Usage("schedule add needs --cron").Hint("%s -- backup.sh", cli.Example(c))
	}
	if s.Spec, _, err = o.task.Read(c, a, words[1:]); err != nil {
		return err
	}
	if !c.IsSet("zone") {
		if s.Zone, err = ops.Zone(a.Getenv); err != nil {
			return err
		}
	}

	times := strings.Fields(s.Cron)
	if len(times) > 0 {
		if setting, zone, ok := strings.Cut(times[0], "="); ok && strings.HasSuffix(setting, "TZ") {
			return ui.Usage("--cron takes no time zone; got %s", times[0]).
				Hint("--zone %s --cron '%s'", zone, strings.Join(times[1:], " "))
		}
	}

	s.Cron = strings.Join(times, " ")
	switch {
	case c.IsSet("catch-up-window") && s.CatchUp != jobs.CatchUpAll:
		return ui.Usage("--catch-up-window requires --catch-up all")
	case s.CatchUpWindow == 0:
		return ui.Usage("--catch-up-window 0: too short; no tick would get a task").Hint("--catch-up skip")
	}

	o.service = a.OtherService()
	return nil
}

func (o *scheduleAddOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	done, err := admin.ApplySchedules(ctx, r, []jobs.Schedule{o.schedule}, admin.ApplyOptions{Keep: !o.replace})
	if bad, ok := errors.AsType[*runner.SpecError](err); ok {
		err = bad.Err
	}
	if err != nil {
		return err
	}

	s := done[0].Schedule
	if err := p.Answer(ui.NewSchedule(s, p.Now(), false), s.Name+"\n", s.Name); err != nil {
		return err
	}
	if !s.PausedAt.IsZero() {
		p.Tell("paused: runner schedule resume %s", s.Name)
		return nil
	}

	next, err := admin.NextTicks(s, 3)
	if err != nil {
		return err
	}

	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return err
	}

	for i, tick := range next {
		p.Tell("%s %s   in %s", []string{"next", "then"}[min(i, 1)], tick.In(zone).Format("Mon 2006-01-02 15:04:05 MST"),
			humanize.Age(tick.Sub(p.Now())))
	}

	return output.NoteWorkers(ctx, r, p, o.service, "schedule add")
}
