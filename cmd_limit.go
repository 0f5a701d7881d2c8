package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func limitCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "limit running tasks and starts per time",
		UsageText: "runner limit set TARGET... [--running N] [--rate N/DUR] [--burst N]\n" +
			"runner limit list\nrunner limit remove TARGET...",
		Subcommands: []*cli.Command{limitSetCommand(a), limitListCommand(a), limitRemoveCommand(a)},
		Description: `EXAMPLES
  runner limit set queue:media --running 2
  runner limit set job:email.send --rate 100/1m
  runner limit list

A limit applies to all workers of the database together. A new limit takes
effect when the next task starts; running tasks continue. TARGET is queue:NAME,
job:NAME, lane:KEY, or all for the whole database.`,
	}
}

func limitSetCommand(a *cli.App) *cli.Command {
	var o limitSetOptions
	return &cli.Command{
		Name: "set", Usage: "set the limit of a queue, job, lane or of the whole database",
		UsageText: "runner limit set TARGET... [--running N] [--rate N/DUR] [--burst N]",
		Flags: []cli.Flag{
			cli.Int(&o.limit.Running, "running", "N", "maximum number of running tasks", 1).
				Default("1 for a lane, no limit for other targets"),
			cli.Value(&o.limit, "rate", "N/DUR", "maximum number of starts in a period, such as 100/1m", o.withRate),
			cli.Int(&o.limit.Burst, "burst", "N", "maximum number of starts at the same moment; 1 spaces the starts evenly", 1).
				Default("N of --rate"),
		},
		Description: `EXAMPLES
  runner limit set queue:media --running 2
  runner limit set job:email.send --rate 100/1m
  runner limit set lane:acct-7 --rate 1/10s --burst 1
  runner limit set lane:gpu --running 2
  runner limit set all --running 10

limit set replaces the whole limit of each target. With --rate N/DUR
and --burst B, at most N + B attempts start in any period of length DUR. The
limit of a lane counts a task as running from its first attempt until it has
finished or is snoozed, also while it waits for another attempt. To stop a
queue, use runner pause.`,
		Action: a.Action(o.read, o.run),
	}
}

func limitListCommand(a *cli.App) *cli.Command {
	var all limitTargets
	return &cli.Command{
		Name: "list", Usage: "list limits and their use", UsageText: "runner limit list",
		Description: `EXAMPLES
  runner limit list
  runner limit list --json

In a pipe, tabs separate the fields target, in use, running, rate, per
(seconds), burst and next start. The next start is the time at which the limit
lets a task start. The field is empty if a task can start now, or has to wait
until a running task ends.`,
		Before: cli.NoArgs(""),
		Action: a.Action(nil, cli.Reads(all.print)),
	}
}

func limitRemoveCommand(a *cli.App) *cli.Command {
	var o limitTargets
	return &cli.Command{
		Name: "remove", Aliases: []string{"rm"}, Usage: "remove limits", UsageText: "runner limit remove TARGET...",
		Description: `EXAMPLES
  runner limit remove queue:media
  runner limit remove job:email.send lane:acct-7

Tasks that waited only because of the removed limits start now.`,
		Action: a.Action(o.read, o.remove),
	}
}

// limitTargets are what limits are for; nil stands for all that have one.
type limitTargets []admin.Target

// read reads the arguments, without duplicates.
func (o *limitTargets) read(c *cli.Context, _ *cli.App) error {
	for _, word := range c.Args().Slice() {
		target, err := db.ParseTarget(word)
		if f, ok := errors.AsType[*jobs.FieldError](err); ok {
			return ui.Usage("%s", f.Msg)
		}
		if !slices.Contains(*o, target) {
			*o = append(*o, target)
		}
	}

	if len(*o) == 0 {
		return ui.Usage("limit %s needs a target: queue:NAME, job:NAME, lane:KEY or all", c.Command.Name).
			Hint("runner limit %s queue:media", c.Command.Name)
	}

	return nil
}

func (o *limitTargets) print(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	limits, err := admin.Limits(ctx, r)
	if err != nil {
		return err
	}
	if len(limits) == 0 {
		p.Note("no limits")
	}
	if *o != nil {
		limits = slices.DeleteFunc(limits, func(l admin.LimitStatus) bool { return !slices.Contains(*o, l.Target) })
	}
	return ui.Limits(p.Now()).Print(p, limits)
}

func (o *limitTargets) remove(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	return cli.ForEach(*o, "limit", func(target admin.Target) error {
		if err := admin.RemoveLimit(ctx, r, target); err != nil {
			return err
		}
		return p.Answer(ui.RemovedLimit(target), humanize.Safe(target.String())+"  removed\n", target.String(), "removed")
	})
}

type limitSetOptions struct {
	limitTargets
	limit admin.Limit // of each target
}

// withRate returns the limit with a rate of the form N/DUR.
func (o *limitSetOptions) withRate(text string) (l admin.Limit, err error) {
	l = o.limit
	number, dur, ok := strings.Cut(text, "/")
	if !ok {
		return l, errors.New("invalid rate; use 100/1m")
	}
	if l.Rate, err = cli.ParseInt(number, 1); err != nil {
		return l, fmt.Errorf("%s %w", number, err)
	}
	if l.Per, err = humanize.ParseDuration(dur); err == nil && l.Per == 0 {
		err = errors.New("too short")
	}
	if err != nil {
		return l, fmt.Errorf("%s %w", dur, err)
	}

	return l, nil
}

func (o *limitSetOptions) read(c *cli.Context, a *cli.App) error {
	err := o.limitTargets.read(c, a)
	switch {
	case err != nil:
		return err
	case c.IsSet("burst") && o.limit.Rate == 0:
		return ui.Usage("--burst requires --rate")
	case !c.IsSet("running") && o.limit.Rate == 0:
		return ui.Usage("limit set needs --running or --rate").Hint("runner limit set %s --running 2", o.limitTargets[0])
	}

	for _, target := range o.limitTargets {
		o.limit.Target = target
		if err := db.ValidateLimit(o.limit); err != nil {
			return err
		}
	}

	return nil
}

func (o *limitSetOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	for _, target := range o.limitTargets {
		o.limit.Target = target
		if err := admin.SetLimit(ctx, r, o.limit); err != nil {
			return err
		}
	}
	return o.print(ctx, r, p)
}
