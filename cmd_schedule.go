package main

import (
	"context"
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
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
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list schedules",
		UsageText: "runner schedule list [--reveal] [--format TEMPLATE]",
		Flags:     []cli.Flag{cli.RevealOption(), cli.FormatOption()},
		Description: `EXAMPLES
  runner schedule list
  runner schedule list --json --reveal >schedules.jsonl

NEXT is the time of the next tick. LAST is the state of the last task, and the
time at which that task was due. In a pipe, tabs separate name, cron, zone,
next_at, last_state, last_at, last_duration (seconds), skipped and job.

runner schedule apply reads the output of --json. If a task has variables or
input, add --reveal, because apply rejects hidden values.`,
		Action: cli.Action(a, false, readScheduleListOptions, cli.Reads(runScheduleList)),
	}
}

func readScheduleListOptions(c *cli.Context, _ *cli.App) (reveal bool, err error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return false, ui.Usage("schedule list takes no arguments; got %q", words[0]).Hint("runner schedule show %s", words[0])
	}
	return cli.Get[bool](c, "reveal"), nil
}

func runScheduleList(ctx context.Context, r *runner.Runner, p *ui.Printer, reveal bool) error {
	list, err := r.Schedules(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		p.Note("no schedules")
	}
	return ui.Schedules(p.Now(), reveal).Print(p, list)
}

func scheduleShowCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a schedule, its next ticks and its last tasks",
		UsageText: "runner schedule show NAME [-n 5] [--reveal] [--format TEMPLATE]",
		Flags: []cli.Flag{cli.IntOption("rows n", "N", "number of ticks and number of tasks to show", 5, 0).Default("5"),
			cli.RevealOption(),
			cli.FormatOption()},
		Description: `EXAMPLES
  runner schedule show backup
  runner schedule show backup -n 20 --reveal

Without --reveal the values of variables are shown as •••, in JSON as null. In a
pipe, show prints a line "KEY<tab>VALUE" for each key of the JSON record, then a
line "run<tab>ID<tab>STATE<tab>TIME" for each of the last tasks.`,
		Action: cli.Action(a, false, readScheduleShowOptions, runScheduleShow),
	}
}

type scheduleShowOptions struct {
	name   string
	rows   int
	reveal bool
}

func readScheduleShowOptions(c *cli.Context, _ *cli.App) (o scheduleShowOptions, err error) {
	o = scheduleShowOptions{rows: cli.Get[int](c, "rows"), reveal: cli.Get[bool](c, "reveal")}
	o.name, err = readScheduleName(c, "show")
	return o, err
}

// readScheduleName reads the name of a schedule, which must be the only argument of the command.
func readScheduleName(c *cli.Context, verb string) (string, error) {
	names, err := readScheduleNames(c, nil)
	switch {
	case err != nil:
		return "", err
	case len(names) > 1:
		return "", ui.Usage("schedule %s takes one name; unexpected argument %q", verb, names[1])
	}
	return names[0], nil
}

// readScheduleNames reads the arguments as names of schedules. It needs at least one and removes duplicates.
func readScheduleNames(c *cli.Context, _ *cli.App) (names []string, err error) {
	for _, word := range c.Args().Slice() {
		name, err := cli.ParseScheduleName(word)
		if err != nil {
			return nil, ui.Usage("%q: %v", word, err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, ui.Usage("schedule %s needs a name", c.Command.Name).Hint("runner schedule list")
	}
	return names, nil
}

func runScheduleShow(ctx context.Context, r *runner.Runner, p *ui.Printer, o scheduleShowOptions) error {
	s, err := r.GetSchedule(ctx, o.name)
	if err != nil {
		return err
	}
	next, err := admin.NextTicks(s, o.rows)
	if err != nil {
		return err
	}
	runs, err := admin.ScheduleRuns(ctx, r, o.name, o.rows)
	if err != nil {
		return err
	}
	full := ui.NewFullSchedule(s, p.Now(), o.reveal, next)
	return p.Choose(func() ui.Record { return full }, func() {
		for _, m := range full {
			p.Fields(m.Key, m.Value)
		}
		for _, t := range runs {
			p.Fields("run", t.ID, t.State, ui.Stamp(ui.DueOf(t)))
		}
	}, func() { ui.DrawSchedule(p, s, next, runs, o.reveal) })
}
