package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/await"
	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/output"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func waitCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "wait", Category: "Control", Usage: "wait until tasks finish",
		UsageText: "runner wait [ID...|SELECTOR] [--timeout DUR] [--any] [--output|--result]",
		Flags: append(a.Selectors(),
			cli.DurationOption("timeout", "stop waiting after this time, exit 124 (never)", 0),
			cli.BoolOption("any", "wait for the first task that finishes, exit with its status"),
			cli.BoolOption("output o", "print the output of the tasks; if there are several, with [ID] before each line"),
			cli.BoolOption("result", "print the JSON result of each task, or null, on a line")),
		Description: `EXAMPLES
  runner wait 1042                     # exit with the status of the task
  runner wait --output 1042            # also print its output
  runner wait 1042 1043                # exit 0 if both completed, else 1
  runner wait -q media && runner enqueue -- publish.sh
  runner wait --batch 41               # the id that enqueue --each has printed

wait prints nothing if the tasks complete soon. After a second of waiting for
several tasks, a terminal shows how many have ended, how many of them failed,
their rate, and an estimate of the time left. Without a terminal a line with
these numbers goes to stderr every minute. With a selector, wait waits for the
matching tasks that are unfinished when it starts. If there are none, it exits
0. With --batch it also counts the tasks that have already failed. ^C and
--timeout end only the wait; the tasks continue. --json prints the record of
each task when it ends, and no progress.

EXIT STATUS with one task or --any
  0         the task completed
  1         a function failed, or its result is not JSON
  2         invalid usage
  124       --timeout, or timeout of the task; stderr says which
  125       no result: the task was cancelled, expired, deleted or lost, or does
            not exist, some of its output is missing, or runner itself failed
  126, 127  the command cannot be executed, or was not found
  128+n     signal n killed the command, or ended the waiting
  others    exit status of the command

EXIT STATUS with several tasks
  0         all tasks completed
  1         some tasks did not complete
  3         some tasks do not exist
  124       --timeout
  others    2 invalid usage, 75 database busy, 128+n signal n`,
		Action: func(c *cli.Context) error {
			o, err := readWaitOptions(c, a.Now())
			if err != nil {
				return err
			}
			return o.mapped(func() error {
				r, err := a.Open(c, false, runner.Options{})
				if err != nil {
					return err
				}
				defer r.Close()
				return runWait(c.Context, r, a.Printer, o)
			}())
		},
	}
}

type waitOptions struct {
	selection cli.Selection
	timeout   time.Duration // 0 means no timeout
	any       bool
	result    bool
	output    bool
}

func readWaitOptions(c *cli.Context, now time.Time) (waitOptions, error) {
	s, err := cli.ReadSelection(c, now)
	o := waitOptions{selection: s, timeout: cli.Get[time.Duration](c, "timeout"), any: cli.Get[bool](c, "any"),
		result: cli.Get[bool](c, "result"), output: cli.Get[bool](c, "output")}
	switch {
	case err != nil:
		return o, err
	case o.output && (o.result || o.any || c.Bool("json")):
		return o, failure.Usage("--output cannot be used with --result, --any or --json")
	case o.result && c.Bool("json"):
		return o, failure.Exclusive("--result", "--json").Because("the record has the result")
	}
	return o, s.Require("wait")
}

// mapped changes the exit status of an error of runner itself if the command otherwise exits with the status of one task. Callers can then
// tell a failed task from a failed wait. See failure.WhileWaiting.
func (o waitOptions) mapped(err error) error {
	if len(o.selection.Filter.IDs) == 1 || o.any {
		return failure.WhileWaiting(err)
	}
	return err
}

// waited contains the tasks that the command waits for.
type waited struct {
	ids     []int64 // tasks that existed at the start
	missing []int64 // ids without a task
}

func runWait(ctx context.Context, r *runner.Runner, p *term.Printer, o waitOptions) error {
	w, err := o.tasks(ctx, r)
	switch {
	case err != nil:
		return err
	case len(w.ids) == 0 && o.selection.Filter.Batch != 0:
		return o.noneInBatch(ctx, r)
	case len(w.ids) == 0 && len(w.missing) == 0:
		return view.WarnUnknown(ctx, r, p, o.selection.Filter)
	case len(w.ids) == 0:
		return failure.NoTasks(w.missing)
	case len(w.missing) > 0 && !p.JSON:
		p.Say("runner: %s", failure.NoTasks(w.missing).What)
	}
	ctx, stop := await.Context(ctx, o.timeout) // before the first message, because its reader may then send a signal
	defer stop()
	if err := announce(ctx, r, p, w.ids); ctx.Err() != nil {
		return await.Stopped(p, context.Cause(ctx), w.ids, len(w.ids))
	} else if err != nil {
		return err
	}
	if n, err := admin.CountUpTo(ctx, r, jobs.Filter{IDs: w.ids, States: jobs.Unfinished()}, 1); err == nil && n > 0 {
		await.NoteMissingWorker(ctx, r, p, "--timeout")
	}
	to := &output.LogPrinter{P: p, Named: len(w.ids) > 1, Follow: true}
	if o.output {
		if err := output.FollowTasks(ctx, r, w.ids, to); err != nil {
			return await.Stopped(p, err, w.ids, len(w.ids))
		}
	}
	var end error
	if o.any || len(w.ids)+len(w.missing) == 1 && o.selection.Filter.Batch == 0 {
		end, err = waitForOne(ctx, r, p, w.ids, o.result)
	} else {
		end, err = w.waitForAll(ctx, r, p, o.result)
	}
	if err != nil {
		return err
	}
	return to.Complete(end)
}

// waitForOne waits until one of the tasks ends. The result end contains the exit status of that task. The result err is an error that
// ended the wait early.
func waitForOne(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64, result bool) (end, err error) {
	err = await.Each(ctx, r, ids, func(t jobs.Task) (more bool, err error) {
		err = showEnd(p, t, result)
		end = await.Finish(p, t)
		return false, err
	})
	if err != nil {
		return nil, await.Stopped(p, err, ids, len(ids))
	}
	return end, nil
}

// waitForAll waits until all tasks have ended. The result end contains the exit status, which is not 0 if a task was missing or did not
// complete. The result err is an error that ended the wait early.
func (w waited) waitForAll(ctx context.Context, r *runner.Runner, p *term.Printer, result bool) (end, err error) {
	failed, err := await.All(ctx, r, p, w.ids, func(t jobs.Task) error { return showEnd(p, t, result) })
	switch {
	case err != nil:
		return nil, err
	case len(w.missing) > 0 && p.JSON:
		return failure.NoTasks(w.missing), nil
	case len(w.missing) > 0:
		return failure.ExitStatus(3), nil
	case failed > 0:
		return failure.ExitStatus(1), nil
	}
	return nil, nil
}

// noneInBatch returns an error if the batch that was selected has no tasks at all.
func (o waitOptions) noneInBatch(ctx context.Context, r *runner.Runner) error {
	id := o.selection.Filter.Batch
	n, err := admin.CountUpTo(ctx, r, jobs.Filter{Batch: id}, 1)
	if err == nil && n == 0 {
		err = failure.NotFound("runner list", "no tasks in batch %d", id)
	}
	return err
}

// tasks returns the selected tasks: the tasks with the given ids, or the tasks that match the filter and are unfinished now. The tasks of a
// batch include those that have already failed or were cancelled, because they count for the exit status.
func (o waitOptions) tasks(ctx context.Context, r *runner.Runner) (w waited, err error) {
	f := o.selection.Filter
	if len(f.IDs) == 0 {
		states := jobs.Unfinished()
		switch {
		case f.Batch != 0 && len(f.States) == 0:
			states = append(states, jobs.Failed, jobs.Cancelled)
		case len(f.States) > 0:
			states = slices.DeleteFunc(states, func(s jobs.State) bool { return !slices.Contains(f.States, s) })
		}
		if f.States = states; len(states) == 0 {
			return w, nil
		}
		w.ids, err = r.IDs(ctx, f, runner.Page{Oldest: true})
		return w, err
	}
	there, err := r.IDs(ctx, f, runner.Page{})
	for _, id := range f.IDs {
		if slices.Contains(there, id) {
			w.ids = append(w.ids, id)
		} else {
			w.missing = append(w.missing, id)
		}
	}
	return w, err
}

// announce prints to a terminal which tasks the command waits for.
func announce(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64) error {
	if !p.Interactive() || len(ids) == 0 {
		return nil
	}
	var parts []string
	total := 0
	for _, state := range []jobs.State{jobs.Running, jobs.Pending, jobs.Retrying, jobs.Scheduled, jobs.Blocked} {
		n, err := r.Count(ctx, jobs.Filter{IDs: ids, States: []jobs.State{state}})
		if err != nil {
			return err
		}
		if total += n; n > 0 {
			parts = append(parts, humanize.Count(int64(n))+" "+string(state))
		}
	}
	switch {
	case total == 1 && len(ids) == 1:
		p.Note("waiting for task %d: %s", ids[0], strings.TrimPrefix(parts[0], "1 "))
	case total == 1:
		p.Note("waiting for 1 task: %s", parts[0])
	case total > 1:
		p.Note("waiting for %s tasks: %s", humanize.Count(int64(total)), strings.Join(parts, ", "))
	}
	return nil
}

// showEnd prints a finished task: its record, or its result.
func showEnd(p *term.Printer, t jobs.Task, result bool) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case p.JSON:
		return p.Record(record.NewTask(t, p.Now()))
	case result:
		return p.Record(record.Raw(t.Result))
	}
	return nil
}

// waitForBatch waits until all tasks of a batch have ended, and returns exit status 1 if some of them did not complete.
func waitForBatch(ctx context.Context, r *runner.Runner, p *term.Printer, added []runner.Enqueued, timeout time.Duration) error {
	ctx, stop := await.Context(ctx, timeout)
	defer stop()
	await.NoteMissingWorker(ctx, r, p, "--wait-timeout")
	byID := make(map[int64]runner.Enqueued, len(added)) // two lines with the same unique key are one task
	for _, one := range added {
		if _, twice := byID[one.ID]; !twice {
			byID[one.ID] = one
		}
	}
	failed, err := await.All(ctx, r, p, slices.Sorted(maps.Keys(byID)), func(t jobs.Task) error {
		if !p.JSON || t.State == "" {
			return nil
		}
		return p.Record(batch.EnqueuedRecord(t, byID[t.ID], p.Now()))
	})
	if err == nil && failed > 0 {
		err = failure.ExitStatus(1)
	}
	return err
}
