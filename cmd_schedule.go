package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func scheduleCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "schedule", Category: "Run tasks", Usage: "add, list, pause, remove cron schedules",
		UsageText: `runner schedule add NAME --cron EXPR [OPTIONS] [--] COMMAND [ARG...]
runner schedule list | show NAME [-n 5] | run NAME
runner schedule pause|resume|remove NAME...
runner schedule apply FILE|- [--prune] [--dry-run]
runner schedule import FILE|- [--prefix TEXT] [--dry-run]`,
		Subcommands: []*cli.Command{
			scheduleAddCommand(a), scheduleListCommand(a), scheduleShowCommand(a), scheduleRunCommand(a), schedulePauseCommand(a),
			scheduleResumeCommand(a), scheduleRemoveCommand(a), scheduleApplyCommand(a), scheduleImportCommand(a),
		},
		Description: `A schedule enqueues a task at each of its ticks. It lives in the database: any
worker does it, and every tick gets one task, however many workers there are.

EXIT STATUS
  0   done
  1   no database; or a schedule is there with another definition
  2   wrong usage; nothing was changed
  3   no schedule of that name
  75  the database is busy, or the disk is full`,
	}
}

func scheduleListCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "all schedules, by name", UsageText: "runner schedule list [--reveal] [--format TEMPLATE]",
		Flags: []cli.Flag{cli.RevealOption(), cli.FormatOption()},
		Description: `NEXT is the next tick, LAST the last task and when it was due.
In a pipe, separated by tabs: name, cron, zone, next_at, last_state, last_at,
last_duration (seconds), skipped, job.

What --json prints is what "runner schedule apply" reads; where a task has env
or input that needs --reveal.

EXIT STATUS
  0   done, whatever was found
  1   no database, or it cannot be read
  2   wrong usage
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readScheduleListOptions, runScheduleList),
	}
}

type scheduleListOptions struct {
	reveal bool
	format *record.Formatter // nil: none
}

func readScheduleListOptions(c *cli.Context, a *cli.App) (o scheduleListOptions, err error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return o, failure.Usage("schedule list takes no words: %q", words[0]).Hint("runner schedule show %s", words[0])
	}
	o.reveal = cli.Get[bool](c, "reveal")
	o.format, err = cli.FormatterOf(c, a.Printer)
	return o, err
}

func runScheduleList(ctx context.Context, r *runner.Runner, p *term.Printer, o scheduleListOptions) error {
	list, err := r.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, s := range list {
		switch {
		case p.JSON:
			err = p.Record(record.NewSchedule(s, o.reveal))
		case o.format != nil:
			err = o.format.Record(record.NewSchedule(s, o.reveal))
		case !p.Stdout.TTY:
			scheduleLine(p, s)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case p.JSON || o.format != nil || !p.Stdout.TTY:
	case len(list) == 0:
		p.Note("no schedules")
	default:
		p.Table(scheduleTable(list, p.Now(), p.Stdout.Width))
	}
	return nil
}

// scheduleLine writes a schedule for other programs.
func scheduleLine(p *term.Printer, s jobs.Schedule) {
	lasted := ""
	if s.LastState.Finished() {
		lasted = record.Seconds(s.LastDuration).String()
	}
	p.Fields(s.Name, s.Cron, s.Zone, record.Stamp(s.NextAt).String(), string(s.LastState), record.Stamp(s.LastAt).String(), lasted,
		strconv.FormatInt(s.Skipped, 10), specText(s.Spec))
}

// specText is what a task of a schedule runs.
func specText(s jobs.Spec) string { return present.JobText(s.Task(time.Time{})) }

// scheduleTable is the table for people.
func scheduleTable(list []jobs.Schedule, now time.Time, width int) term.Table {
	t := term.Table{Columns: []term.Column{{Name: "NAME"}, {Name: "CRON", DropOrder: 3}, {Name: "ZONE", DropOrder: 1}, {Name: "NEXT"},
		{Name: "LAST", DropOrder: 4, Paint: lastColour}, {Name: "TOOK", AlignRight: true, DropOrder: 2}, {Name: "JOB"}}}
	for _, s := range list {
		lasted := ""
		if s.LastState.Finished() {
			lasted = humanize.Took(s.LastDuration)
		}
		t.Rows = append(t.Rows, []string{term.Cut(s.Name, nameWidth(width)), s.Cron, s.Zone, nextText(s, now), lastText(s, now), lasted,
			specText(s.Spec)})
	}
	return t
}

// nextText is when a schedule ticks next: "in 8h", "now", "paused".
func nextText(s jobs.Schedule, now time.Time) string {
	switch {
	case !s.PausedAt.IsZero():
		return "paused"
	case s.NextAt.IsZero():
		return "–"
	case !s.NextAt.After(now):
		return "now"
	}
	return "in " + humanize.Age(s.NextAt.Sub(now))
}

// lastText is how the last task of a schedule stands, and when it was due: "completed 15h ago".
func lastText(s jobs.Schedule, now time.Time) string {
	if s.LastState == "" {
		return ""
	}
	return string(s.LastState) + " " + humanize.Age(now.Sub(s.LastAt)) + " ago"
}

func lastColour(cell string) term.Colour {
	state, _, _ := strings.Cut(cell, " ")
	return term.StateColour(state)
}

func scheduleShowCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "one schedule: its next ticks, its last tasks",
		UsageText: "runner schedule show NAME [-n 5] [--reveal] [--format TEMPLATE]",
		Flags:     []cli.Flag{cli.IntOption("rows n", "N", "so many ticks and tasks (5)", 5, 0), cli.RevealOption(), cli.FormatOption()},
		Description: `The values of env are shown as ••• (in JSON: null) unless --reveal is given.
In a pipe: a line "key, tab, value" for each key of the JSON record, then a
line "run, tab, id, tab, state, tab, time" for each of its last tasks.

EXIT STATUS
  0   done
  1   no database, or it cannot be read
  2   wrong usage
  3   no schedule of that name
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readScheduleShowOptions, runScheduleShow),
	}
}

type scheduleShowOptions struct {
	name   string
	rows   int
	reveal bool
	format *record.Formatter // nil: none
}

func readScheduleShowOptions(c *cli.Context, a *cli.App) (o scheduleShowOptions, err error) {
	o = scheduleShowOptions{rows: cli.Get[int](c, "rows"), reveal: cli.Get[bool](c, "reveal")}
	if o.name, err = readScheduleName(c, "show"); err != nil {
		return o, err
	}
	o.format, err = cli.FormatterOf(c, a.Printer)
	return o, err
}

// readScheduleName reads the one word of a command as the name of a schedule.
func readScheduleName(c *cli.Context, verb string) (string, error) {
	names, err := readScheduleNames(c, nil)
	switch {
	case err != nil:
		return "", err
	case len(names) > 1:
		return "", failure.Usage("schedule %s takes one name: %q is left over", verb, names[1])
	}
	return names[0], nil
}

// readScheduleNames reads the words as names of schedules, at least one, each kept once.
func readScheduleNames(c *cli.Context, _ *cli.App) (names []string, err error) {
	for _, word := range c.Args().Slice() {
		name, err := cli.ParseScheduleName(word)
		if err != nil {
			return nil, failure.Usage("%q %v", word, err)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, failure.Usage("schedule %s needs a name", c.Command.Name).Hint("runner schedule list, to find it")
	}
	return distinct(names), nil
}

func distinct(names []string) (list []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			list = append(list, name)
		}
		seen[name] = true
	}
	return list
}

func runScheduleShow(ctx context.Context, r *runner.Runner, p *term.Printer, o scheduleShowOptions) error {
	s, err := r.GetSchedule(ctx, o.name)
	if err != nil {
		return err
	}
	next, err := r.NextTicks(s, o.rows)
	if err != nil {
		return err
	}
	full := record.FullSchedule{Schedule: record.NewSchedule(s, o.reveal),
		Next: record.List(next, func(t time.Time) record.Stamp { return record.Stamp(t) })}
	switch {
	case p.JSON:
		return p.Record(full)
	case o.format != nil:
		return o.format.Record(full)
	}
	runs, err := r.ScheduleRuns(ctx, o.name, o.rows)
	if err != nil {
		return err
	}
	if p.Stdout.TTY {
		drawSchedule(p, s, next, runs, o.reveal)
		return nil
	}
	list, err := record.Pairs(full)
	if err != nil {
		return err
	}
	for _, pair := range list {
		p.Fields(pair.Key, pair.Value)
	}
	for _, t := range runs {
		p.Fields("run", strconv.FormatInt(t.ID, 10), string(t.State), record.Stamp(dueOf(t)).String())
	}
	return nil
}

// dueOf is the tick of a task, or when a run by hand was due.
func dueOf(t jobs.Task) time.Time {
	if t.Tick.IsZero() {
		return t.RunAt
	}
	return t.Tick
}

// drawSchedule shows a schedule to people.
func drawSchedule(p *term.Printer, s jobs.Schedule, next []time.Time, runs []jobs.Task, reveal bool) {
	now := p.Now()
	headline := nextText(s, now)
	if s.PausedAt.IsZero() && !s.NextAt.IsZero() {
		headline = "next " + headline
	} else if !s.PausedAt.IsZero() {
		headline = "paused " + humanize.Age(now.Sub(s.PausedAt)) + " ago"
		if s.PausedBy != "" {
			headline += " by " + s.PausedBy
		}
	}
	p.Print(fmt.Sprintf("schedule %s   %s\n", s.Name, humanize.Safe(headline)))
	t := sheet{task: s.Spec.Task(s.CreatedAt), input: s.Spec.Input, reveal: reveal, now: now}
	if !reveal {
		t.input = nil
	}
	for _, line := range append([][]fact{{{"cron", s.Cron}, {"zone", s.Zone}}, scheduleRules(s)}, t.rules()...) {
		p.Print(fitFacts(line, p.Stdout.Width))
	}
	if len(next) > 0 {
		p.Print("\n")
		list := term.Table{Columns: []term.Column{{Name: "  NEXT"}, {Name: ""}}}
		zone, err := time.LoadLocation(s.Zone)
		if err != nil {
			zone = time.UTC
		}
		for _, tick := range next {
			list.Rows = append(list.Rows, []string{"  " + tick.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), "in " + humanize.Age(tick.Sub(now))})
		}
		p.Table(list)
	}
	if len(runs) > 0 {
		p.Print("\n")
		list := term.Table{Columns: []term.Column{{Name: "  TASK", AlignRight: true}, {Name: "STATE", Paint: term.StateColour}, {Name: "DUE"},
			{Name: "TIME", AlignRight: true}, {Name: "NOTE"}}}
		for _, run := range runs {
			lasted := ""
			if d, ok := present.Lasted(run, now); ok {
				lasted = humanize.Took(d)
			}
			list.Rows = append(list.Rows, []string{strconv.FormatInt(run.ID, 10), string(run.State), humanize.Clock(dueOf(run), now), lasted,
				present.Note(run, runner.Holds{}, now)})
		}
		p.Table(list)
		if p.Interactive() {
			p.Print("\n")
		}
		p.Note("  logs: runner logs %d     all: runner list --schedule %s", runs[0].ID, s.Name)
	}
}

// scheduleRules are the policies of a schedule.
func scheduleRules(s jobs.Schedule) []fact {
	catchUp := string(s.CatchUp)
	if s.CatchUp == jobs.CatchUpAll {
		catchUp += " within " + timetext.WriteDuration(s.CatchUpWindow)
	}
	jitter := "–"
	if s.Jitter > 0 {
		jitter = timetext.WriteDuration(s.Jitter)
	}
	return []fact{{"overlap", fmt.Sprintf("%s (%s skipped)", s.Overlap, humanize.Count(s.Skipped))}, {"catch-up", catchUp}, {"jitter", jitter}}
}
