package main

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func pauseCommand(a *cli.App) *cli.Command {
	o := &pauseOptions{tasks: cli.Bulk{Verb: "pause", Done: "paused"}}
	return &cli.Command{
		Category: "Control", Usage: "keep waiting tasks or whole queues from starting",
		UsageText: "runner pause ID...|SELECTOR [--reason TEXT]\n" +
			"runner pause -q QUEUE|--all [--for DUR] [--reason TEXT]",
		Description: `EXAMPLES
  runner pause 1042 --reason "wait for the audit"
  runner pause -q media --for 2h
  trap 'runner resume -q web' EXIT; runner pause -q web; ./migrate.sh

A number is the id of a task. -q alone pauses the queue itself, with its later
tasks, and --all pauses all queues. Beside another selector, -q selects tasks:
"runner pause -q web --label nightly".

TASKS
A paused task starts only after resume. Its state is blocked. It gives up its
lane, so that other tasks of the lane can run, but keeps its unique key. It can
still expire, and is still cancelled if a task of its --after does not complete.
Running and finished tasks stay unchanged. If you pause a task again, the user,
time and reason of the first pause stay.

A selector selects waiting tasks only. If it matches several tasks, pause asks
for confirmation on a terminal; without a terminal it needs --yes. pause prints
a line for each task: its id and state.

QUEUES
After pause returns, no worker starts another task of the paused queues. Running
tasks continue; if such a task needs another attempt, that attempt waits. A
pause survives restarts. The commands status, list, show and enqueue show the
pause. --all pauses queues that do not exist yet, too.

The pause of a queue lasts until resume. With --for it ends by itself, unless
resume comes first. To pause again replaces the end: without --for, it takes the
end away. pause prints a line for each queue: its name and "paused". With --for,
the time at which the pause ends follows.`,
		Flags: o.options(a, "queue to pause, with its later tasks; beside another selector: tasks of this queue; repeatable",
			"all queues, including queues that do not exist yet",
			cli.Duration(&o.length, "for", "end the pause of queues after this time").Default("until resume"),
			cli.Text(&o.reason, "reason", "TEXT", "reason that is shown with the pause")),
		Action: a.Action(o.readPause, o.pause),
	}
}

func resumeCommand(a *cli.App) *cli.Command {
	o := &pauseOptions{tasks: cli.Bulk{Verb: "resume", Done: "resumed"}}
	return &cli.Command{
		Category: "Control", Usage: "let paused tasks or queues start again",
		UsageText: "runner resume ID...|SELECTOR\nrunner resume -q QUEUE|--all|--deletion",
		Description: `EXAMPLES
  runner resume 1042
  runner resume -q media
  runner resume --all

A number is the id of a task. -q alone resumes the queue itself. Beside another
selector, -q selects paused tasks.

A resumed task starts under the same conditions as a new task: at its start
time, after the tasks of its --after, and in the order of its lane. Waiting
tasks that are not paused stay unchanged. If a selector matches several paused
tasks, resume asks for confirmation on a terminal; without a terminal it needs
--yes. resume prints a line for each task: its id and state.

Workers start tasks of resumed queues within a second. --all ends the pause of
the whole database and of each single queue; paused tasks stay paused. resume
prints a line for each queue: its name and "running".

Workers stop deleting old tasks for an hour in two cases: the clock has jumped
forwards by more than a day, or a worker starts after more than a day without
any worker. If the clock is right, run resume --deletion: workers then delete
old tasks again within ten minutes.`,
		Flags: o.options(a, "queue to resume; beside another selector: paused tasks of this queue; repeatable",
			"end all pauses of queues",
			cli.Bool(&o.deletion, "deletion", "confirm that the clock is right, and delete old tasks again")),
		Action: a.Action(o.readResume, o.resume),
	}
}

// pauseOptions are the options of pause and resume. They name tasks, queues, or
// the deletion of old tasks.
type pauseOptions struct {
	tasks    cli.Bulk
	queues   []string // admin.AllQueues stands for all of them
	deletion bool
	reason   string
	length   time.Duration // 0: until resume
}

// options returns the flags. Here --queue and --all name queues, not tasks.
func (o *pauseOptions) options(a *cli.App, queue, all string, more ...cli.Flag) []cli.Flag {
	list := o.tasks.Options(a, more...)
	cli.Reword(list, "queue", queue)
	cli.Reword(list, "all", all)
	return list
}

func (o *pauseOptions) readPause(c *cli.Context, a *cli.App) error {
	if err := o.read(c, a); err != nil {
		return err
	}
	switch {
	case len(o.reason) > taskspec.MaxError:
		return ui.Usage("--reason is too long; at most %s", humanize.Size(taskspec.MaxError))
	case c.IsSet("for") && o.length <= 0:
		return ui.Usage("--for must be positive")
	case c.IsSet("for") && o.queues == nil:
		return ui.Usage("--for is for queues; a task stays paused until resume").Hint("runner pause -q media --for 2h")
	}

	return nil
}

func (o *pauseOptions) readResume(c *cli.Context, a *cli.App) error {
	if !o.deletion {
		return o.read(c, a)
	}
	if c.NArg() > 0 || !a.Alone(c, "deletion") {
		return ui.Usage("--deletion cannot be used with tasks or queues")
	}
	return nil
}

// read reads which tasks or queues to pause or to resume.
func (o *pauseOptions) read(c *cli.Context, a *cli.App) error {
	verb, s := c.Command.Name, &o.tasks.Selection
	if err := s.Read(c, a); err != nil {
		if _, bad := cli.ParseQueue(c.Args().First()); bad == nil {
			err = ui.Usage("%q is no task id", c.Args().First()).Hint("runner %s -q %s", verb, c.Args().First())
		}
		return err
	}

	o.queues = s.WholeQueues()
	switch {
	case o.queues != nil && o.tasks.DryRun:
		return ui.Usage("--dry-run is for tasks, not for queues")
	case o.queues != nil:
		return nil
	case s.Require(verb) != nil:
		return ui.Usage("%s needs task ids or a queue", verb).
			Hint("runner %s 1042      runner %[1]s -q media      runner %[1]s --all", verb)
	}

	return o.tasks.OnlyFitting()
}

func (o *pauseOptions) pause(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if o.queues == nil {
		return o.tasks.ChangeWaiting(ctx, r, p, func(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
			return r.Pause(ctx, ids, runner.PauseOptions{Reason: o.reason})
		})
	}

	var err error
	if p.Interactive() && !slices.Contains(o.queues, admin.AllQueues) { // scripts may pause a queue before its first use
		if err = ui.WarnUnknown(ctx, r, p, jobs.Filter{Queues: o.queues}); err != nil {
			return err
		}
	}
	if o.length > 0 {
		err = admin.PauseQueues(ctx, r, o.queues, admin.PauseOptions{For: o.length, Reason: o.reason})
	} else {
		err = admin.PauseQueues(ctx, r, o.queues, admin.PauseOptions{Reason: o.reason})
	}
	if err != nil {
		return err
	}

	return ui.PrintQueues(ctx, r, p, o.queues)
}

func (o *pauseOptions) resume(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	switch {
	case o.deletion:
		return admin.ResumeDeletion(ctx, r)
	case o.queues == nil:
		return o.tasks.ChangeWaiting(ctx, r, p, r.Resume)
	}

	if err := admin.ResumeQueues(ctx, r, o.queues...); err != nil {
		return err
	}
	if err := ui.PrintQueues(ctx, r, p, o.queues); err != nil {
		return err
	}

	pauses, err := admin.Pauses(ctx, r)
	if err == nil && ui.AllPaused(pauses) && !slices.Contains(o.queues, admin.AllQueues) {
		err = (&ui.Error{Code: "conflict", Exit: 1, What: "the whole database is paused"}).Hint("runner resume --all")
	}

	return err
}
