package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func limitCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "limit", Category: "Steer", Usage: "how many at once, how many per minute",
		UsageText: "runner limit set TARGET... [--running N] [--rate N/DUR] [--burst N]\n" +
			"runner limit list\nrunner limit remove TARGET...",
		Subcommands: []*cli.Command{limitSetCommand(a), limitListCommand(a), limitRemoveCommand(a)},
		Description: `A limit holds for all workers of the database together, and from the next start
on: nothing that runs is stopped. TARGET is queue:NAME, job:NAME or lane:KEY.

EXIT STATUS
  0   done
  2   wrong usage; nothing was changed
  3   remove: there is no such limit`,
	}
}

func limitSetCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "limit a queue, job or lane", UsageText: "runner limit set TARGET... [--running N] [--rate N/DUR] [--burst N]",
		Flags: []cli.Flag{
			cli.IntOption("running", "N", "at most so many at once; not for lanes: they run one at a time", 0, 0),
			cli.Scalar("rate", "N/DUR", "so many starts in that time: 100/1m", startRate{}, parseRate),
			cli.IntOption("burst", "N", "so many starts at once after a quiet time; 1: evenly spaced (N of --rate)", 0, 0),
		},
		Description: `Replaces the whole limit of each target; setting the same one again changes
nothing. In any DUR at most N + burst tasks start; each attempt is a start.
To stop a queue altogether: runner pause.

EXAMPLES
  runner limit set queue:media --running 2
  runner limit set job:email.send --rate 100/1m
  runner limit set lane:acct-7 --rate 1/10s --burst 1

EXIT STATUS
  0   the limit is on the disk, and holds for the next start
  2   wrong usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Action: cli.Action(a, false, readLimits, runLimitSet),
	}
}

func limitListCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "all limits, and how they stand", UsageText: "runner limit list",
		Description: `In a pipe, separated by tabs: target, in use, running, rate, per (seconds),
burst, next start (empty: now, or when one ends).

EXIT STATUS
  0   done, whatever was found
  1   no database, or it cannot be read
  2   wrong usage`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) ([]jobs.Target, error) {
			if c.Args().Present() {
				return nil, failure.Usage("limit list takes no arguments: %q", c.Args().First())
			}
			return nil, nil
		}, runLimitList),
	}
}

func limitRemoveCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "lift limits", UsageText: "runner limit remove TARGET...",
		Description: `EXIT STATUS
  0   the limits are gone; what waited for them starts
  2   wrong usage; nothing was changed
  3   there is no such limit; the others are removed
  75  the database is busy, or the disk is full`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) ([]jobs.Target, error) { return readTargets(c, "remove") },
			runLimitRemove),
	}
}

// startRate is a maximum of n starts per period.
type startRate struct {
	n   int
	per time.Duration
}

// parseRate parses N/DUR.
func parseRate(text string) (startRate, error) {
	number, dur, ok := strings.Cut(text, "/")
	if !ok {
		return startRate{}, errors.New("invalid rate; use 100/1m")
	}
	n, err := cli.ParseInt(number, 1)
	if err != nil {
		return startRate{}, fmt.Errorf("%s %w", number, err)
	}
	per, err := timetext.ParseDuration(dur)
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
		target, err := jobs.ParseTarget(word)
		if f, ok := errors.AsType[*jobs.FieldError](err); ok {
			return nil, failure.Usage("%s", f.Msg)
		}
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	if len(targets) == 0 {
		return nil, failure.Usage("limit %s needs a target: queue:NAME, job:NAME or lane:KEY", verb).Hint("runner limit %s queue:media",
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
	case c.IsSet("running") && running == 0:
		return nil, failure.Usage("--running 0: at least 1").Hint("runner pause %s", targets[0].Name)
	case c.IsSet("burst") && burst == 0:
		return nil, failure.Usage("--burst 0: at least 1")
	case c.IsSet("burst") && r.n == 0:
		return nil, failure.Usage("--burst goes with --rate")
	case !c.IsSet("running") && r.n == 0:
		return nil, failure.Usage("limit set needs --running or --rate").Hint("runner limit set %s --running 2", targets[0])
	case burst == 0:
		burst = r.n
	}
	limits := make([]jobs.Limit, len(targets))
	for i, target := range targets {
		limits[i] = jobs.Limit{Target: target, Running: running, Rate: r.n, Per: r.per, Burst: burst}
		if err := limits[i].Validate(); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

func runLimitSet(ctx context.Context, r *runner.Runner, p *term.Printer, limits []jobs.Limit) error {
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
func runLimitList(ctx context.Context, r *runner.Runner, p *term.Printer, targets []jobs.Target) error {
	limits, err := r.Limits(ctx)
	if err != nil {
		return err
	}
	var shown []runner.LimitStatus // rows of the table
	for _, l := range limits {
		if targets != nil && !slices.Contains(targets, l.Target) {
			continue
		}
		switch {
		case p.JSON:
			if err := p.Record(record.NewLimit(l)); err != nil {
				return err
			}
		case p.Stdout.TTY:
			shown = append(shown, l)
		default:
			view.LimitLine(p, l)
		}
	}
	if len(shown) > 0 {
		p.Table(view.LimitTable(shown, p.Now()))
	} else if len(limits) == 0 {
		p.Note("no limits")
	}
	return nil
}

func runLimitRemove(ctx context.Context, r *runner.Runner, p *term.Printer, targets []jobs.Target) error {
	var missing []string
	for _, target := range targets {
		err := r.RemoveLimit(ctx, target)
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			missing = append(missing, target.String())
		case err != nil:
			return err
		case p.JSON:
			if err := p.Record(record.LimitRemoved{Target: target.String(), Removed: true}); err != nil {
				return err
			}
		case p.Stdout.TTY:
			p.Print(humanize.Safe(target.String()) + "  removed\n")
		default:
			p.Fields(target.String(), "removed")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure.NotFound("runner limit list", "no limit %s", strings.Join(missing, ", "))
}
