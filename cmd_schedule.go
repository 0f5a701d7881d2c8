package main

import (
	"context"
	"slices"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func scheduleCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Run", Usage: "manage cron schedules",
		UsageText: `runner schedule add NAME --cron EXPR [OPTIONS] [--] COMMAND [ARG...]
runner schedule list | show NAME [-n 5] | run NAME
runner schedule pause|resume|remove NAME...
runner schedule apply FILE|- [--prune] [--dry-run]
runner schedule import FILE|- [--prefix TEXT] [--dry-run]`,
		Subcommands: []*cli.Command{
			scheduleAddCommand(a), scheduleListCommand(a), scheduleShowCommand(a), scheduleRunCommand(a), schedulePauseCommand(a),
			scheduleResumeCommand(a), scheduleRemoveCommand(a), scheduleApplyCommand(a), scheduleImportCommand(a),
		},
		Description: `EXAMPLES
  runner schedule add backup --cron '0 3 * * *' -- backup.sh --full
  runner schedule list
  runner schedule show backup

A schedule enqueues a task at each of its ticks. The database stores the
schedules, and the workers enqueue the tasks. Each tick adds one task, even if
several workers run.`,
	}
}

func scheduleListCommand(a *cli.App) *cli.Command {
	var reveal bool
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list schedules",
		UsageText: "runner schedule list [--reveal] [--format TEMPLATE]",
		Flags:     []cli.Flag{cli.RevealOption(&reveal), a.FormatOption()},
		Description: `EXAMPLES
  runner schedule list
  runner schedule list --json --reveal >schedules.jsonl

NEXT is the time of the next tick. LAST is the state of the last task, and the
time at which that task was due. In a pipe, tabs separate name, cron, zone,
next_at, last_state, last_at, last_duration (seconds), skipped and job.

runner schedule apply reads the output of --json. If a task has variables or
input, add --reveal, because apply rejects hidden values.`,
		Before: cli.NoArgs("runner schedule show ARG"),
		Action: a.Action(nil, cli.Reads(func(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
			return runScheduleList(ctx, r, p, reveal)
		})),
	}
}

func runScheduleList(ctx context.Context, r *runner.Runner, p *ui.Printer, reveal bool) error {
	list, err := admin.Schedules(ctx, r)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		p.Note("no schedules")
	}
	return ui.Schedules(p.Now(), reveal).Print(p, list)
}

func scheduleShowCommand(a *cli.App) *cli.Command {
	o := &scheduleShowOptions{rows: 5}
	return &cli.Command{
		Name: "show", Usage: "show a schedule, its next ticks and its last tasks",
		UsageText: "runner schedule show NAME [-n 5] [--reveal] [--format TEMPLATE]",
		Flags: []cli.Flag{
			cli.Int(&o.rows, "rows n", "N", "number of ticks and number of tasks to show", 0).Default("5"),
			cli.RevealOption(&o.reveal),
			a.FormatOption(),
		},
		Description: `EXAMPLES
  runner schedule show backup
  runner schedule show backup -n 20 --reveal

Without --reveal the values of variables are shown as •••, in JSON as null. In a
pipe, show prints a line "KEY<tab>VALUE" for each key of the JSON record, then a
line "run<tab>ID<tab>STATE<tab>TIME" for each of the last tasks.`,
		Action: a.Action(o.readOne, o.run),
	}
}

type scheduleShowOptions struct {
	scheduleNames
	rows   int
	reveal bool
}

// scheduleNames are the arguments of a command.
type scheduleNames []string

// read reads one or more names, without duplicates.
func (o *scheduleNames) read(c *cli.Context, _ *cli.App) error {
	for _, word := range c.Args().Slice() {
		name, err := cli.ParseScheduleName(word)
		if err != nil {
			return ui.Usage("%q: %v", word, err)
		}
		if !slices.Contains(*o, name) {
			*o = append(*o, name)
		}
	}

	if len(*o) == 0 {
		return ui.Usage("schedule %s needs a name", c.Command.Name).Hint("runner schedule list")
	}

	return nil
}

func (o *scheduleNames) readOne(c *cli.Context, a *cli.App) error {
	err := o.read(c, a)
	if err == nil && len(*o) > 1 {
		err = ui.Usage("schedule %s takes one name; unexpected argument %q", c.Command.Name, (*o)[1])
	}
	return err
}

func (o *scheduleShowOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	s, err := admin.Schedule(ctx, r, o.scheduleNames[0])
	if err != nil {
		return err
	}

	next, err := admin.NextTicks(s, o.rows)
	if err != nil {
		return err
	}

	runs, err := ui.ScheduleRuns(ctx, r, s.Name, o.rows)
	if err != nil {
		return err
	}

	full := ui.NewFullSchedule(s, p.Now(), o.reveal, next)
	return p.Show(func() ui.Record { return full }, func(p *ui.Printer) {
		for _, m := range full {
			p.Fields(m.Key, m.Value)
		}
		for _, t := range runs {
			p.Fields("run", t.ID, t.State, ui.Stamp(ui.DueOf(t)))
		}
	}, func(p *ui.Printer) { ui.DrawSchedule(p, s, next, runs, o.reveal) })
}
