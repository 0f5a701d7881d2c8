package main

import (
	"context"
	"slices"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func listCommand(a *cli.App) *cli.Command {
	o := &listOptions{Listing: ui.Listing{Rows: 30}}
	return &cli.Command{
		Aliases: []string{"ls"}, Category: "Inspect", Usage: "list tasks, newest first",
		UsageText: "runner list [ID...|SELECTOR] [-n ROWS] [-r] [--before ID | --sort due]\n" +
			"runner list [SELECTOR] --format TEMPLATE | --json\n" +
			"runner list --group [SELECTOR]",
		Flags: append(o.selection.Options(a),
			cli.Int(&o.Rows, "rows n", "ROWS", "print at most this many tasks; 0: all", 0).Default("30, or all given ids"),
			cli.Bool(&o.Oldest, "reverse r", "print the oldest tasks first"),
			cli.Value(&o.selection.Filter.Before, "before", "ID", "tasks with lower ids only; for the next page", cli.ParseID),
			cli.Choice(&o.sort, "sort", "id: newest first; due: scheduled and retrying tasks, due next first", "id", "due").
				Default("id"),
			cli.Bool(&o.group, "group", "group the failed tasks by their cause; print the largest group first"),
			cli.Bool(&o.selection.Filter.Paused, "paused", "paused tasks only; they start after runner resume"),
			cli.Bool(&o.Wide, "wide", "also print PRI, LANE, CPU, MEMORY and WORKER; do not cut lines"),
			cli.RevealOption(&o.Reveal),
			a.FormatOption()),
		Description: `EXAMPLES
  runner list -s failed --since 1d
  runner list -q media -s unfinished -n 0 --json
  runner list --format '{{.id}}\t{{.state}}\t{{json .args}}'

list selects tasks that match all selectors. If you repeat a selector, a task
must match one of its values. Without a selector, list lists every task.

list --group lists the causes of the last 10,000 failed tasks that match. Two
failed tasks have the same cause if they have the same job, the same last error
line, and attempts that ended in the same way. Numbers, ids, e-mail addresses
and paths in the error lines may differ. runner retry --group KEY retries the
tasks of a group.

COLUMNS
  TRY     attempt/maximum; 0/– if the job sets the maximum at the first start
  AGE     time since the task was enqueued
  TIME    duration of the current or last attempt
  CPU     CPU time of the last attempt of a command
  MEMORY  maximum memory of the last attempt of a command
  NOTE    detail of the state: in 48s, stopping, exit 22, signal 9, by ann, …
  ERROR   last line that the failed command printed, or the error of a function

On a narrow terminal, list omits columns in this order: TRY, ERROR, QUEUE, AGE,
TIME, NOTE. In a pipe, tabs separate id, state, queue, try, created_at, duration
(seconds), note, worker, job and error.`,
		Action: a.Action(o.read, cli.Reads(o.run)),
	}
}

type listOptions struct {
	ui.Listing
	selection cli.Selection
	sort      string
	group     bool // whether to print groups of similar failed tasks
}

func (o *listOptions) read(c *cli.Context, a *cli.App) error {
	if err := o.selection.Read(c, a); err != nil {
		return err
	}

	o.Filter = o.selection.Filter
	if o.ByDue = o.sort == "due"; o.ByDue {
		if name := cli.FirstSet(c, "before", "reverse", "state"); name != "" {
			return ui.Exclusive("--sort due", "--"+name)
		}
		o.Filter.States = []jobs.State{jobs.Scheduled, jobs.Retrying}
	}
	if len(o.Filter.IDs) > 0 && !c.IsSet("rows") {
		o.Rows = 0
	}
	if o.group {
		return o.onlyFailed(c)
	}

	return nil
}

// onlyFailed returns an error for options that don't apply to groups, which
// have failed tasks only.
func (o *listOptions) onlyFailed(c *cli.Context) error {
	if name := cli.FirstSet(c, "before", "reverse", "sort", "paused", "reveal"); name != "" {
		return ui.Exclusive("--group", "--"+name)
	}
	if len(o.Filter.IDs) > 0 {
		return ui.Exclusive("--group", "task ids")
	}
	if len(o.Filter.States) > 0 && !slices.Equal(o.Filter.States, []jobs.State{jobs.Failed}) {
		return ui.Usage("--group is for failed tasks; leave out --state").Hint("runner list --group --since 1d")
	}
	return nil
}

func (o *listOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if o.group {
		return o.PrintGroups(ctx, r, p)
	}
	return o.Print(ctx, r, p)
}
