package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func scheduleAddCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "add or change a schedule",
		UsageText: `runner schedule add NAME --cron EXPR [OPTIONS] [--] COMMAND [ARG...]
runner schedule add NAME --cron EXPR [OPTIONS] --shell SCRIPT
runner schedule add NAME --cron EXPR [OPTIONS] --job JOB [--args JSON]`,
		Flags: append([]cli.Flag{
			cli.TextOption("cron", "EXPR", "times of the ticks: five cron fields, @daily, @every 90s or @reboot", ""),
			cli.TextOption("zone", "ZONE", "time zone of the cron fields, such as Europe/Berlin", "").Default("the zone of the system"),
			cli.ChoiceOption("overlap", "if the last task is unfinished at a tick: skip the tick, allow both tasks, or "+
				"replace the old task",
				string(jobs.OverlapSkip), string(jobs.OverlapSkip), string(jobs.OverlapAllow), string(jobs.OverlapReplace)).Default("skip"),
			cli.ChoiceOption("catch-up", "for missed ticks: add one task for all of them, no task, or a task for each tick",
				string(jobs.CatchUpOne), string(jobs.CatchUpOne), string(jobs.CatchUpSkip), string(jobs.CatchUpAll)).Default("one"),
			cli.DurationOption("catch-up-window", "with --catch-up all: ignore missed ticks that are older than this",
				24*time.Hour).Default("1d"),
			cli.DurationOption("jitter", "delay each task by a random time of at most DUR after its tick", 0),
			cli.DurationOption("alert-after",
				"raise an alert and run --on-failure if no task completes for this time", 0).Default("never"),
			cli.BoolOption("replace", "if the schedule exists, replace its definition; keep its history and its pause"),
		}, cli.Without(cli.Flags(a), cli.OfOneTask()...)...),
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
		Action: cli.Action(a, true, readScheduleAddOptions, runScheduleAdd),
	}
}

type scheduleAddOptions struct {
	service  string // database of this machine's service, which may be the one that the user meant
	schedule jobs.Schedule
	replace  bool
}

func readScheduleAddOptions(c *cli.Context, a *cli.App) (o scheduleAddOptions, err error) {
	words := c.Args().Slice()
	if len(words) == 0 {
		return o, ui.Usage("schedule add needs a name").Hint("%s -- backup.sh", cli.Example(c))
	}
	name, err := cli.ParseScheduleName(words[0])
	if err != nil {
		return o, ui.Usage("%q: %v", words[0], err)
	}
	words = words[1:]
	if !c.IsSet("cron") {
		return o, ui.Usage("schedule add needs --cron").Hint("%s -- backup.sh", cli.Example(c))
	}
	spec, _, err := cli.ReadTask(c, a, words)
	if err != nil {
		return o, err
	}
	zone := cli.Get[string](c, "zone")
	if !c.IsSet("zone") {
		if zone, err = ops.Zone(a.Getenv); err != nil {
			return o, err
		}
	}
	times := strings.Fields(cli.Get[string](c, "cron"))
	if len(times) > 0 {
		if setting, zone, ok := strings.Cut(times[0], "="); ok && strings.HasSuffix(setting, "TZ") {
			return o, ui.Usage("--cron takes no time zone; got %s", times[0]).
				Hint("--zone %s --cron '%s'", zone, strings.Join(times[1:], " "))
		}
	}
	s := jobs.Schedule{Name: name, Cron: strings.Join(times, " "), Zone: zone, Spec: spec,
		Overlap: jobs.Overlap(cli.Get[string](c, "overlap")), CatchUp: jobs.CatchUp(cli.Get[string](c, "catch-up")),
		CatchUpWindow: cli.Get[time.Duration](c, "catch-up-window"), Jitter: cli.Get[time.Duration](c, "jitter"),
		AlertAfter: cli.Get[time.Duration](c, "alert-after")}
	switch {
	case c.IsSet("catch-up-window") && s.CatchUp != jobs.CatchUpAll:
		return o, ui.Usage("--catch-up-window requires --catch-up all")
	case s.CatchUpWindow == 0:
		return o, ui.Usage("--catch-up-window 0: too short; no tick would get a task").Hint("--catch-up skip")
	}
	return scheduleAddOptions{schedule: s, replace: cli.Get[bool](c, "replace"), service: a.OtherService(c)}, nil
}

func runScheduleAdd(ctx context.Context, r *runner.Runner, p *ui.Printer, o scheduleAddOptions) error {
	done, err := r.ApplySchedules(ctx, []jobs.Schedule{o.schedule}, runner.ApplyOptions{Keep: !o.replace})
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
