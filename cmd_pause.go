package main

import (
	"context"
	"fmt"
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func pauseCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "pause", Category: "Steer", Usage: "stop starting tasks from a queue",
		UsageText: "runner pause QUEUE...|--all [--reason TEXT]",
		Description: `When it returns, no worker starts another task of these queues. Running tasks
go on; what they retry waits. A pause survives restarts and is shown by status,
list, show and enqueue. --all pauses the database: queues that come later, too.

Prints a line per queue: its name and "paused".

EXAMPLES
  runner pause media --reason "disk is full"
  trap 'runner resume web' EXIT; runner pause web; ./migrate.sh

EXIT STATUS
  0   nothing of these queues starts any more
  1   no database, or it cannot be written
  2   usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Flags: []cli.Flag{cli.BoolOption("all", "every queue, now and later"),
			cli.TextOption("reason", "TEXT", "shown wherever the pause is", "")},
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) (pauseOptions, error) { return readPauseOptions(c, "pause") },
			runPause),
	}
}

// pauseOptions are the options of pause and of resume.
type pauseOptions struct {
	queues []string // names of queues; only runner.AllQueues with --all
	reason string
}

func readPauseOptions(c *cli.Context, verb string) (pauseOptions, error) {
	o := pauseOptions{queues: c.Args().Slice(), reason: c.String("reason")}
	all := cli.Get[bool](c, "all")
	switch {
	case all && len(o.queues) > 0:
		return o, failure.Usage("queues and --all exclude each other")
	case all:
		o.queues = []string{runner.AllQueues}
		return o, nil
	case len(o.queues) == 0:
		return o, failure.Usage("%s needs a queue", verb).Hint("runner %s media      runner %[1]s --all", verb)
	}
	for _, queue := range o.queues {
		if _, err := cli.ParseQueue(queue); err != nil {
			return o, failure.Usage("queue %q %v", queue, err)
		}
	}
	slices.Sort(o.queues)
	o.queues = slices.Compact(o.queues)
	if len(o.reason) > jobs.MaxError {
		return o, failure.Usage("--reason is longer than %s", humanize.Size(jobs.MaxError))
	}
	return o, nil
}

func runPause(ctx context.Context, r *runner.Runner, p *term.Printer, o pauseOptions) error {
	if err := r.Pause(ctx, o.reason, o.queues...); err != nil {
		return err
	}
	return o.tell(ctx, r, p)
}

// tell prints the state of the queues. With --all it prints every known queue.
func (o pauseOptions) tell(ctx context.Context, r *runner.Runner, p *term.Printer) error {
	known, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	pauses, err := r.Pauses(ctx)
	if err != nil {
		return err
	}
	if o.queues[0] == runner.AllQueues {
		return o.tellAll(p, known, pauses)
	}
	for _, name := range o.queues {
		q := runner.Queue{Queue: name}
		if i := slices.IndexFunc(known, func(q runner.Queue) bool { return q.Queue == name }); i >= 0 {
			q = known[i]
		} else {
			q.Pause, _ = pauses.Of(name)
		}
		if err := tellQueue(p, q); err != nil {
			return err
		}
	}
	return o.doubts(ctx, r, p, known, pauses)
}

func (o pauseOptions) tellAll(p *term.Printer, known []runner.Queue, pauses runner.Pauses) error {
	if !p.Stdout.TTY || p.JSON {
		for _, q := range known {
			if err := tellQueue(p, q); err != nil {
				return err
			}
		}
		return nil
	}
	pending := 0
	for _, q := range known {
		pending += q.Counts[jobs.Pending]
	}
	p.Print("all queues  " + pauseState(admin.AllPaused(pauses)) + inBrackets(pending) + "\n")
	return nil
}

func tellQueue(p *term.Printer, q runner.Queue) error {
	switch {
	case p.JSON:
		return p.Record(record.NewQueue(q, p.Now()))
	case p.Stdout.TTY:
		p.Print(q.Queue + "  " + pauseState(record.Paused(q)) + inBrackets(q.Counts[jobs.Pending]) + "\n")
	default:
		p.Fields(q.Queue, pauseState(record.Paused(q)))
	}
	return nil
}

func pauseState(paused bool) string {
	if paused {
		return "paused"
	}
	return "running"
}

func inBrackets(pending int) string {
	if pending == 0 {
		return ""
	}
	return fmt.Sprintf("  (%s)", humanize.TasksWait(pending))
}

// doubts warns at a terminal about queue names that are probably mistyped: the queue has no tasks, none ended there recently, and no
// worker names it.
func (o pauseOptions) doubts(ctx context.Context, r *runner.Runner, p *term.Printer, known []runner.Queue, pauses runner.Pauses) error {
	if !p.Interactive() {
		return nil
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return err
	}
	for _, name := range o.queues {
		used := slices.ContainsFunc(known, func(q runner.Queue) bool {
			return q.Queue == name && len(q.Counts)+len(q.Ended) > 0
		}) || slices.ContainsFunc(workers, func(w runner.Worker) bool { return w.Queues != nil && w.Serves(name) })
		if _, own := pauses[name]; own && !used {
			p.Note("no task is in queue %s, none ended there in 24h, and no worker names it%s", name, meant(name, known))
		}
	}
	return nil
}

// meant returns a hint with the known queue whose name is similar to name, or an empty string.
func meant(name string, known []runner.Queue) string {
	var names []string
	for _, q := range known {
		if len(q.Counts)+len(q.Ended) > 0 {
			names = append(names, q.Queue)
		}
	}
	if near := cli.Nearest(name, names); near != "" {
		return " (" + near + "?)"
	}
	return ""
}
