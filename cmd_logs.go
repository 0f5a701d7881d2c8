package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/await"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/output"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func logsCommand(a *cli.App) *cli.Command {
	selectors := slices.DeleteFunc(a.Selectors(), func(f cli.Flag) bool { return f.Names()[0] == "since" || f.Names()[0] == "until" })
	return &cli.Command{
		Name: "logs", Category: "Inspect", Usage: "print the output of tasks (-f: follow)",
		UsageText: "runner logs [ID...|SELECTOR] [-f] [-n N] [--since WHEN] [--attempt N|all]",
		Flags: append(selectors,
			cli.BoolOption("follow f", "continue until the tasks have finished"),
			cli.IntOption("tail n", "N", "print only the last N lines of each task", -1, 0),
			a.WhenOption("since", "output that was printed at this time or later"),
			a.WhenOption("until", "tasks that finished before this time; unfinished tasks created before it"),
			cli.Scalar("attempt", "N|all", "output of attempt N, or of all attempts (latest)", output.Range{}, parseAttempt),
			cli.BoolOption("timestamps", "print the time before each line")),
		Description: `EXAMPLES
  runner logs -f 1042
  runner logs -q media -f --timestamps
  runner logs -n 20 1042

logs prints the output of tasks byte for byte: their stdout to stdout, their
stderr to stderr. For several tasks each line begins with [ID]. A selector means
all matching tasks, the oldest first. With -f a selector means the tasks that
run now or start later, until ^C.

With -f and an id, logs waits for the start of the task, continues through its
retries, and ends with it. If the middle of a long output was not stored, a line
on stderr says so. --json prints the chunks of output as they are stored.

EXIT STATUS
  0      done, in whatever state the tasks ended
  1      no database, or it cannot be read
  2      invalid usage
  3      some ids do not exist; the output of the other tasks is printed
  75     the database was busy for too long
  128+n  signal n ended logs (130: ^C)`,
		Action: cli.Action(a, false, readLogsOptions, runLogs),
	}
}

type logsOptions struct {
	filter     jobs.Filter
	which      output.Range
	since      time.Time
	follow     bool
	timestamps bool
}

func readLogsOptions(c *cli.Context, a *cli.App) (logsOptions, error) {
	s, err := cli.ReadSelection(c, a.Now(), "since")
	if err != nil {
		return logsOptions{}, err
	}
	o := logsOptions{filter: s.Filter, which: cli.Get[output.Range](c, "attempt"), since: cli.Get[time.Time](c, "since"),
		follow:     cli.Get[bool](c, "follow"),
		timestamps: cli.Get[bool](c, "timestamps")}
	o.which.Lines = cli.Get[int](c, "tail")
	if o.follow && len(o.filter.IDs) == 0 {
		for _, name := range []string{"state", "until", "older-than"} {
			if c.IsSet(name) {
				return o, failure.Usage("-f cannot be used with --%s; it follows running tasks", name)
			}
		}
	}
	return o, s.Require("logs")
}

// parseAttempt parses the value of --attempt: a number or "all".
func parseAttempt(text string) (output.Range, error) {
	if text == "all" {
		return output.Range{All: true}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return output.Range{}, errors.New("invalid attempt; use a number from 1, or all")
	}
	return output.Range{N: n}, nil
}

func runLogs(ctx context.Context, r *runner.Runner, p *term.Printer, o logsOptions) error {
	to := &output.LogPrinter{P: p, Timestamps: o.timestamps, Follow: o.follow, Since: o.since}
	var err error
	switch {
	case !o.follow:
		err = showLogs(ctx, r, o, to)
	case len(o.filter.IDs) > 0:
		ctx, stop := signals.Until(ctx)
		defer stop()
		err = followTasks(ctx, r, o, to)
	default:
		ctx, stop := signals.Until(ctx)
		defer stop()
		err = followFilter(ctx, r, p, o, to)
	}
	if s, ok := errors.AsType[signals.Received](err); ok {
		err = failure.ExitStatus(s.Status())
	}
	if finishErr := to.Finish(); err == nil {
		err = finishErr
	}
	return err
}

// showLogs prints the output that exists now.
func showLogs(ctx context.Context, r *runner.Runner, o logsOptions, to *output.LogPrinter) error {
	ids := o.filter.IDs
	if len(ids) == 0 {
		var err error
		if ids, err = o.matching(ctx, r); err != nil {
			return err
		}
	}
	to.Named = len(ids) > 1
	var missing []int64
	for part := range slices.Chunk(ids, 100) {
		tasks, err := r.List(ctx, jobs.Filter{IDs: part}, runner.Page{})
		if err != nil {
			return err
		}
		for _, id := range part {
			i := slices.IndexFunc(tasks, func(t jobs.Task) bool { return t.ID == id })
			if i < 0 {
				missing = append(missing, id)
				continue
			}
			one := output.Cursor{Range: o.which}
			if _, err := one.Advance(ctx, r, tasks[i], to); err != nil {
				return err
			}
			if err := to.EndLines(tasks[i]); err != nil {
				return err
			}
			if len(o.filter.IDs) > 0 {
				noteWithoutOutput(to.P, tasks[i], o.which)
			}
		}
	}
	if len(missing) > 0 && len(o.filter.IDs) > 0 {
		return failure.NoTasks(missing)
	}
	return nil
}

// noteWithoutOutput prints why the output of a task is empty if the task or the attempt has not started.
func noteWithoutOutput(p *term.Printer, t jobs.Task, which output.Range) {
	switch {
	case p.JSON:
	case t.StartedAt.IsZero():
		p.Say("task %d has not started; runner logs -f %[1]d follows it", t.ID)
	case which.N > t.Attempt:
		p.Say("task %d has no attempt %d; the last one is %d", t.ID, which.N, t.Attempt)
	}
}

// matching returns the ids of the tasks that match the filter and may have printed output since o.since, oldest first.
func (o logsOptions) matching(ctx context.Context, r *runner.Runner) ([]int64, error) {
	if o.since.IsZero() {
		return r.IDs(ctx, o.filter, runner.Page{Oldest: true})
	}
	var ids []int64
	for _, states := range [][]jobs.State{jobs.Finished(), jobs.Unfinished()} {
		f := o.filter
		if len(f.States) > 0 {
			states = slices.DeleteFunc(states, func(s jobs.State) bool { return !slices.Contains(f.States, s) })
		}
		if f.States = states; len(states) == 0 {
			continue
		}
		if states[0].Finished() {
			f.Since = o.since
		}
		more, err := r.IDs(ctx, f, runner.Page{})
		if err != nil {
			return nil, err
		}
		ids = append(ids, more...)
	}
	slices.Sort(ids)
	return ids, nil
}

// followTasks prints the output of the tasks with the given ids until all of them have finished.
func followTasks(ctx context.Context, r *runner.Runner, o logsOptions, to *output.LogPrinter) error {
	to.Named = len(o.filter.IDs) > 1
	existing, err := r.IDs(ctx, o.filter, runner.Page{})
	if err != nil {
		return err
	}
	var missing []int64
	tasks := map[int64]*output.Cursor{}
	for _, id := range o.filter.IDs {
		if !slices.Contains(existing, id) {
			missing = append(missing, id)
			continue
		}
		tasks[id] = &output.Cursor{Range: o.which}
	}
	if len(missing) > 0 && len(existing) > 0 && !to.P.JSON {
		to.P.Say("runner: %s", failure.NoTasks(missing).What)
	}
	if len(existing) > 0 {
		if err := output.Follow(ctx, r, existing, tasks, to); err != nil {
			return err
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(existing) == 0 || to.P.JSON:
		return failure.NoTasks(missing)
	}
	return failure.ExitStatus(3)
}

// overlap is a part of the time before the last poll in which followFilter searches for finished tasks again. Such a search is necessary
// because a worker reads the end time of a task before other processes can see that the task has ended.
const overlap = 5 * time.Second

// followFilter prints the output of the tasks that match a filter until ctx ends. These are the tasks that run now and the tasks that
// start later. A task may start and end between two polls, so followFilter also reads the tasks that have ended recently.
func followFilter(ctx context.Context, r *runner.Runner, p *term.Printer, o logsOptions, to *output.LogPrinter) error {
	to.Named = true
	began := p.Now()
	lastPoll := began
	which := o.which
	which.Began = began
	running := map[int64]*output.Cursor{}
	shown := map[int64]jobs.Task{} // recently ended tasks whose output is shown completely
	return await.Changes(ctx, r, func() (bool, error) {
		from := lastPoll.Add(-overlap)
		lastPoll = p.Now()
		tasks, err := o.active(ctx, r, from, slices.Collect(maps.Keys(running)))
		if err != nil {
			return false, err
		}
		for _, t := range tasks {
			if last, ok := shown[t.ID]; ok && last.GenerationID == t.GenerationID {
				continue
			}
			if running[t.ID] == nil {
				running[t.ID] = &output.Cursor{Range: which}
			}
			done, err := running[t.ID].Advance(ctx, r, t, to)
			if err != nil {
				return false, err
			}
			if done {
				delete(running, t.ID)
				shown[t.ID] = t
			}
		}
		which.Lines = -1 // show the whole output of tasks that start from now on
		maps.DeleteFunc(shown, func(_ int64, t jobs.Task) bool { return t.FinishedAt.Before(from.Add(-overlap)) })
		return false, p.Flush()
	})
}

// active returns the running tasks, the tasks that ended after the time since, and the tasks whose ids are in known, oldest first.
func (o logsOptions) active(ctx context.Context, r *runner.Runner, since time.Time, known []int64) ([]jobs.Task, error) {
	var tasks []jobs.Task
	filters := []jobs.Filter{o.filter, o.filter}
	filters[0].States = []jobs.State{jobs.Running}
	filters[1].States, filters[1].Since = jobs.Finished(), since
	if len(known) > 0 {
		filters = append(filters, jobs.Filter{IDs: known})
	}
	for _, f := range filters {
		more, err := r.List(ctx, f, runner.Page{})
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}
	// A task can be in two of the lists if its state changed between the reads. Keep the record with the highest generation.
	slices.SortStableFunc(tasks, func(a, b jobs.Task) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.GenerationID, a.GenerationID))
	})
	return slices.CompactFunc(tasks, func(a, b jobs.Task) bool { return a.ID == b.ID }), nil
}
