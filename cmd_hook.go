package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func hookCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Control", Usage: "run commands when the tasks of a queue end",
		UsageText:   "runner hook set QUEUE... OPTIONS\nrunner hook list\nrunner hook remove QUEUE...",
		Subcommands: []*cli.Command{hookSetCommand(a), hookListCommand(a), hookRemoveCommand(a)},
		Description: `EXAMPLES
  runner hook set media --on-failure /usr/local/bin/task-failed
  runner hook list
  runner hook remove media

The hooks of a queue apply to its tasks that have no hooks of their own. New
hooks apply to tasks that end after hook set. Tasks of queues without hooks use
the hooks of the worker, such as work --on-failure.

EXIT STATUS
  0   done
  2   invalid usage; nothing was changed
  3   hook remove: the queue has no hooks`,
	}
}

func hookSetCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "set the hooks of a queue",
		UsageText: "runner hook set QUEUE... [--on-failure CMD] [--on-success CMD] ...",
		Flags: []cli.Flag{
			cli.TextOption("on-failure", "CMD", "run CMD as a task if a task fails and is not retried", ""),
			cli.TextOption("on-success", "CMD", "run CMD when a task completes", ""),
			cli.TextOption("on-recovery", "CMD",
				"run CMD when a task completes and the previous task of its schedule or --unique key failed", ""),
			cli.TextOption("on-output", "CMD", "run CMD when a task ends and has printed something", ""),
		},
		Description: `EXAMPLES
  runner hook set media --on-failure /usr/local/bin/task-failed
  runner hook set media mail --on-output 'cat >>/var/log/tasks'

hook set replaces all hooks of each given queue. /bin/sh -c runs CMD, as a task
of its own; see runner enqueue --help.

EXIT STATUS
  0   the hooks are on the disk
  2   invalid usage; nothing was changed
  75  the database is busy, or the disk is full`,
		Action: cli.Action(a, false, readQueueHooks, runHookSet),
	}
}

func hookListCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the hooks of queues", UsageText: "runner hook list",
		Description: `EXAMPLES
  runner hook list
  runner hook list --json

In a pipe, tabs separate queue, on-failure, on-success, on-recovery and
on-output.

EXIT STATUS
  0   done; also if no queue has hooks
  1   no database, or it cannot be read
  2   invalid usage`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) (queueHooks, error) {
			if c.Args().Present() {
				return queueHooks{}, failure.Usage("hook list takes no arguments; got %q", c.Args().First())
			}
			return queueHooks{}, nil
		}, runHookList),
	}
}

func hookRemoveCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "remove", Aliases: []string{"rm"}, Usage: "remove the hooks of a queue", UsageText: "runner hook remove QUEUE...",
		Description: `EXAMPLES
  runner hook remove media
  runner hook remove media mail

Hook commands that have already been enqueued still run.

EXIT STATUS
  0   the hooks are removed
  2   invalid usage; nothing was changed
  3   some queues have no hooks; the hooks of the other queues are removed
  75  the database is busy, or the disk is full`,
		Action: cli.Action(a, false, func(c *cli.Context, _ *cli.App) (queueHooks, error) { return readHookQueues(c, "remove") },
			runHookRemove),
	}
}

// queueHooks has the hooks that a command sets, and the names of the queues that get them.
type queueHooks struct {
	queues []string
	hooks  jobs.Hooks
}

func readHookQueues(c *cli.Context, verb string) (o queueHooks, err error) {
	for _, word := range c.Args().Slice() {
		queue, err := cli.ParseQueue(word)
		if err != nil {
			return o, failure.Usage("%q: %v", word, err)
		}
		o.queues = append(o.queues, queue)
	}
	if len(o.queues) == 0 {
		return o, failure.Usage("hook %s needs a queue", verb).Hint("runner hook %s default", verb)
	}
	return o, nil
}

func readQueueHooks(c *cli.Context, _ *cli.App) (queueHooks, error) {
	o, err := readHookQueues(c, "set")
	if err != nil {
		return o, err
	}
	o.hooks = jobs.Hooks{OnFailure: cli.Get[string](c, "on-failure"), OnSuccess: cli.Get[string](c, "on-success"),
		OnRecovery: cli.Get[string](c, "on-recovery"), OnOutput: cli.Get[string](c, "on-output")}
	if o.hooks == (jobs.Hooks{}) {
		return o, failure.Usage("hook set needs a hook").Hint("runner hook set %s --on-failure CMD", o.queues[0])
	}
	return o, admin.ValidHooks(o.hooks)
}

func runHookSet(ctx context.Context, r *runner.Runner, p *term.Printer, o queueHooks) error {
	for _, queue := range o.queues {
		if _, err := admin.SetHooks(ctx, r, queue, o.hooks); err != nil {
			return err
		}
	}
	return runHookList(ctx, r, p, o)
}

// runHookList shows the hooks of the queues in o, or of all queues if o names none.
func runHookList(ctx context.Context, r *runner.Runner, p *term.Printer, o queueHooks) error {
	all, err := admin.Hooks(ctx, r)
	if err != nil {
		return err
	}
	for _, queue := range slices.Sorted(maps.Keys(all)) {
		h := all[queue]
		switch {
		case o.queues != nil && !slices.Contains(o.queues, queue):
		case p.JSON:
			if err := p.Record(record.NewHooks(queue, h)); err != nil {
				return err
			}
		case p.Stdout.TTY:
			for _, hook := range [][2]string{{"failure", h.OnFailure}, {"success", h.OnSuccess}, {"recovery", h.OnRecovery},
				{"output", h.OnOutput}} {
				if hook[1] != "" {
					p.Print(queue + "  --on-" + hook[0] + "  " + humanize.Safe(hook[1]) + "\n")
				}
			}
		default:
			p.Fields(queue, h.OnFailure, h.OnSuccess, h.OnRecovery, h.OnOutput)
		}
	}
	if len(all) == 0 {
		p.Note("no hooks")
	}
	return nil
}

func runHookRemove(ctx context.Context, r *runner.Runner, p *term.Printer, o queueHooks) error {
	var missing []string
	for _, queue := range o.queues {
		had, err := admin.SetHooks(ctx, r, queue, jobs.Hooks{})
		switch {
		case err != nil:
			return err
		case !had:
			missing = append(missing, queue)
		case p.JSON:
			if err := p.Record(record.HooksRemoved{Queue: queue, Removed: true}); err != nil {
				return err
			}
		default:
			p.Fields(queue, "removed")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure.NotFound("runner hook list", "no hooks of %s", strings.Join(missing, ", "))
}
