package main

import (
	"context"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/runner"
)

func statusCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "status", Category: "See", Usage: "queues, workers, what is wrong",
		UsageText: "runner status [-q NAME]... [-f] [--format TEMPLATE]",
		Flags: []cli.Flag{cli.Repeated("queue q", "NAME", "only this queue; repeatable", cli.One(cli.ParseQueue)),
			cli.BoolOption("follow f", "draw again every 2s, with plots of the last hour, until ^C (terminal only)"), cli.FormatOption()},
		Description: `The first line says whether anything works here. Then the queues, the workers,
and what somebody should look at, each with the command to type.

COLUMNS
  PENDING SCHED BLOCK RETRY RUN   tasks in that state now
  FAILED 24H  DONE 24H            tasks that ended so in the last 24 hours
  OLDEST                          the pending task that waits longest
  paused                          nothing of the queue starts (runner resume)
  limit                           it is at its limit (runner limit list)
  SLOTS                           busy/all
  With -q, of the last hour:
  STARTS             attempts that started
  WAIT P50 WAIT P95  from when a task was due until it started, half and 95 of
                     100 waited no longer; RUN: how long its last attempt took.
                     Exact up to 10,000 tasks that ended (of all queues), then
                     of the last 10,000, and STARTS estimated from counters.
  LIMIT              of the queue: running/most at once, starts/time
  On a narrow terminal some of them leave.
  In a pipe, separated by tabs: a line per record, its first field queue,
  worker, schedule or problem, then the record's values in the order of --json.

EXIT STATUS
  0   the database can be read, whatever is wrong with its tasks
  1   no database, or it cannot be read
  2   wrong usage
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readStatusOptions, runStatus),
	}
}

type statusOptions struct {
	queues []string // nil means all queues
	follow bool
	format *record.Formatter // template of --format; nil if not given
}

func readStatusOptions(c *cli.Context, a *cli.App) (o statusOptions, err error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return o, failure.Usage("status takes no words: %q", words[0]).Hint("runner status -q %s", words[0])
	}
	o = statusOptions{queues: cli.Get[[]string](c, "queue"), follow: cli.Get[bool](c, "follow")}
	o.format, err = cli.FormatterOf(c, a.Printer)
	if err == nil && o.follow && (!a.Printer.Stdout.TTY || a.Printer.JSON || o.format != nil) {
		err = failure.Usage("--follow draws on a terminal").Hint("runner status --json, every so often")
	}
	return o, err
}

// redrawEvery is the interval at which --follow refreshes the screen.
const redrawEvery = 2 * time.Second

func runStatus(ctx context.Context, r *runner.Runner, p *term.Printer, o statusOptions) error {
	for {
		s, err := view.ReadStatus(ctx, r, p.Now(), o.queues)
		if err != nil {
			return err
		}
		switch {
		case p.JSON:
			return p.Record(s.Record())
		case o.format != nil:
			return o.format.Record(s.Record())
		case !p.Stdout.TTY:
			return s.Lines(p)
		}
		if !o.follow {
			s.Draw(p)
			return nil
		}
		if s.Trend, err = admin.Trend(ctx, r, time.Minute, view.TrendMinutes); err != nil {
			return err
		}
		p.Stdout.Resize()
		s.Redraw(p)
		if err := p.Flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redrawEvery):
		}
	}
}
