package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
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
	return &cli.Command{
		Name: "set", Usage: "set the limit of a queue, job, lane or of the whole database",
		UsageText: "runner limit set TARGET... [--running N] [--rate N/DUR] [--burst N]",
		Flags: []cli.Flag{
			cli.IntOption("running", "N", "maximum number of running tasks", 0, 1).Default("1 for a lane, no limit for other targets"),
			cli.Scalar("rate", "N/DUR", "maximum number of starts in a period, such as 100/1m", startRate{}, parseRate),
			cli.IntOption("burst", "N", "maximum number of starts at the same moment; 1 spaces the starts evenly", 0, 1).
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
		Action: cli.Action(a, false, readLimits, runLimitSet),
	}
}

func limitListCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list limits and their use", UsageText: "runner limit list",
		Description: `EXAMPLES
  runner limit list
  runner limit list --json

In a pipe, tabs separate the fields target, in use, running, rate, per
(seconds), burst and next start. The next start is the time at which the limit
lets a task start. The field is empty if a task can start now, or has to wait
until a running task ends.`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) ([]jobs.Target, error) {
			if c.Args().Present() {
				return nil, ui.Usage("limit list takes no arguments; got %q", c.Args().First())
			}
			return nil, nil
		}, cli.Reads(runLimitList)),
	}
}

func limitRemoveCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "remove", Aliases: []string{"rm"}, Usage: "remove limits", UsageText: "runner limit remove TARGET...",
		Description: `EXAMPLES
  runner limit remove queue:media
  runner limit remove job:email.send lane:acct-7

Tasks that waited only because of the removed limits start now.`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) ([]jobs.Target, error) { return readTargets(c, "remove") },
			runLimitRemove),
	}
}

// startRate is a limit: at most n tasks may start per period.
type startRate struct {
	n   int
	per time.Duration
}

// parseRate parses a rate of the form N/DUR.
func parseRate(text string) (startRate, error) {
	number, dur, ok := strings.Cut(text, "/")
	if !ok {
		return startRate{}, errors.New("invalid rate; use 100/1m")
	}
	n, err := cli.ParseInt(number, 1)
	if err != nil {
		return startRate{}, fmt.Errorf("%s %w", number, err)
	}
	per, err := humanize.ParseDuration(dur)
	if err == nil && per == 0 {
		err = errors.New("too short")
	}
	if err != nil {
		return startRate{}, fmt.Errorf("%s %w", dur, err)
	}
	return startRate{n, per}, nil
}

func readTargets(c *cli.Context, verb string) ([]jobs.Target, error) {
	var targets []jobs.Target
	for _, word := range c.Args().Slice() {
		target, err := taskspec.ParseTarget(word)
		if f, ok := errors.AsType[*jobs.FieldError](err); ok {
			return nil, ui.Usage("%s", f.Msg)
		}
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	if len(targets) == 0 {
		return nil, ui.Usage("limit %s needs a target: queue:NAME, job:NAME, lane:KEY or all",
			verb).Hint("runner limit %s queue:media",
			verb)
	}
	return targets, nil
}

func readLimits(c *cli.Context, _ *cli.App) ([]jobs.Limit, error) {
	targets, err := readTargets(c, "set")
	if err != nil {
		return nil, err
	}
	r, running, burst := cli.Get[startRate](c, "rate"), cli.Get[int](c, "running"), cli.Get[int](c, "burst")
	switch {
	case c.IsSet("burst") && r.n == 0:
		return nil, ui.Usage("--burst requires --rate")
	case !c.IsSet("running") && r.n == 0:
		return nil, ui.Usage("limit set needs --running or --rate").Hint("runner limit set %s --running 2", targets[0])
	}
	limits := make([]jobs.Limit, len(targets))
	for i, target := range targets {
		limits[i] = jobs.Limit{Target: target, Running: running, Rate: r.n, Per: r.per, Burst: burst}
		if err := taskspec.ValidateLimit(limits[i]); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

func runLimitSet(ctx context.Context, r *runner.Runner, p *ui.Printer, limits []jobs.Limit) error {
	var targets []jobs.Target
	for _, limit := range limits {
		if err := r.SetLimit(ctx, limit); err != nil {
			return err
		}
		targets = append(targets, limit.Target)
	}
	return runLimitList(ctx, r, p, targets)
}

// runLimitList shows the limits of the given targets, or all limits if targets is nil.
func runLimitList(ctx context.Context, r *runner.Runner, p *ui.Printer, targets []jobs.Target) error {
	limits, err := r.Limits(ctx)
	if err != nil {
		return err
	}
	if len(limits) == 0 {
		p.Note("no limits")
	}
	if targets != nil {
		limits = slices.DeleteFunc(limits, func(l runner.LimitStatus) bool { return !slices.Contains(targets, l.Target) })
	}
	return ui.Limits(p.Now()).Print(p, limits)
}

func runLimitRemove(ctx context.Context, r *runner.Runner, p *ui.Printer, targets []jobs.Target) error {
	return cli.ForEach(targets, "limit", func(target jobs.Target) error {
		if err := r.RemoveLimit(ctx, target); err != nil {
			return err
		}
		return p.Answer(ui.RemovedLimit(target), humanize.Safe(target.String())+"  removed\n", target.String(), "removed")
	})
}
