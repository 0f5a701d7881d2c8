package main

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func listCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Category: "Inspect", Usage: "list tasks, newest first",
		UsageText: "runner list [ID...|SELECTOR] [-n ROWS] [-r] [--before ID | --sort due]\n" +
			"runner list [SELECTOR] --format TEMPLATE | --json\n" +
			"runner list --group [SELECTOR]",
		Flags: append(a.Selectors(),
			cli.IntOption("rows n", "ROWS", "maximum number of tasks; 0: all (30; all given ids)", 30, 0),
			cli.BoolOption("reverse r", "oldest first"),
			cli.Scalar("before", "ID", "tasks with lower ids only; for the next page", int64(0), cli.ParseID),
			cli.ChoiceOption("sort", "due: the waiting tasks, in the order of their due times (id)", "id", "id", "due"),
			cli.BoolOption("group", "failed tasks, grouped by their cause; the largest group first"),
			cli.BoolOption("held", "tasks that wait for runner release"),
			cli.BoolOption("wide", "also print PRI, LANE, CPU, MEMORY and WORKER; do not cut lines"),
			cli.RevealOption(), cli.FormatOption()),
		Description: `EXAMPLES
  runner list -s failed --since 1d
  runner list -q media -s unfinished -n 0 --json
  runner list --format '{{.id}}\t{{.state}}\t{{json .args}}'

list selects tasks that match all selectors. If a selector is repeated, one of
its values must match. Without a selector it lists every task.

--sort due lists pending, scheduled and retrying tasks by due time, the next one
first. Other selectors may narrow them down to the 10,000 that it sorts at most.

--group lists the causes of the last 10,000 failed tasks that match. A cause is
the job, the way in which the attempt ended, and the last error line, whose
numbers, ids and paths do not count. runner retry --group KEY retries a group.

COLUMNS
  TRY   attempt/maximum; 0/– until the first start if the job sets the maximum
  AGE   time since the task was enqueued
  TIME  duration of the current or last attempt
  CPU, MEMORY
        CPU time and largest resident set of the last attempt of a command
  NOTE  in 48s, stopping, exit 22, signal 9, timeout, lost 4, by ann, ...
  ERROR last line that the failed command printed, or the error of a function
  A narrow terminal omits columns: TRY, ERROR, QUEUE, AGE, TIME, NOTE, in this
  order.
  In a pipe, tabs separate id, state, queue, try, created_at, duration
  (seconds), note, worker and job.

EXIT STATUS
  0   done; also if no task was found
  1   no database, or it cannot be read
  2   invalid usage
  3   some ids do not exist; the other tasks are listed
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readListOptions, runList),
	}
}

type listOptions struct {
	filter       jobs.Filter
	rows         int // maximum number of rows; 0 means all
	oldest       bool
	byDue        bool // order by due time, not by id
	group        bool // groups of failed tasks instead of tasks
	wide, reveal bool
	format       *record.Formatter // template of --format; nil if not given
}

func readListOptions(c *cli.Context, a *cli.App) (listOptions, error) {
	s, err := cli.ReadSelection(c, a.Now())
	if err != nil {
		return listOptions{}, err
	}
	o := listOptions{filter: s.Filter, rows: cli.Get[int](c, "rows"), oldest: cli.Get[bool](c, "reverse"),
		wide: cli.Get[bool](c, "wide"), reveal: cli.Get[bool](c, "reveal")}
	o.filter.Before, o.filter.Held = cli.Get[int64](c, "before"), cli.Get[bool](c, "held")
	if o.byDue = c.String("sort") == "due"; o.byDue {
		if o.filter.Before > 0 {
			return o, failure.Usage("--sort due does not go with --before, which is for a list by id").
				Hint("runner list --sort due -n 100")
		}
		if len(o.filter.States) == 0 {
			o.filter.States = []jobs.State{jobs.Pending, jobs.Retrying, jobs.Scheduled}
		}
	}
	if o.group = cli.Get[bool](c, "group"); o.group {
		if err := o.onlyFailed(c); err != nil {
			return o, err
		}
	}
	if len(o.filter.IDs) > 0 && !c.IsSet("rows") {
		o.rows = 0
	}
	o.format, err = cli.FormatterOf(c, a.Printer)
	return o, err
}

// onlyFailed limits a list of groups to failed tasks. It rejects options that do not apply to groups.
func (o *listOptions) onlyFailed(c *cli.Context) error {
	for _, name := range []string{"before", "reverse", "sort", "held", "reveal"} {
		if c.IsSet(name) {
			return failure.Exclusive("--group", "--"+name)
		}
	}
	if len(o.filter.IDs) > 0 {
		return failure.Exclusive("--group", "task ids")
	}
	if len(o.filter.States) > 0 && !slices.Equal(o.filter.States, []jobs.State{jobs.Failed}) {
		return failure.Usage("--group is for failed tasks; leave out --state").Hint("runner list --group --since 1d")
	}
	return nil
}

// listGroups prints groups of failed tasks.
func listGroups(ctx context.Context, r *runner.Runner, p *term.Printer, o listOptions) error {
	groups, err := present.ReadFailures(ctx, r, o.filter, present.MaxGrouped)
	if err != nil {
		return err
	}
	all, tasks := len(groups), 0
	for _, g := range groups {
		tasks += len(g.IDs)
	}
	if o.rows > 0 {
		groups = groups[:min(len(groups), o.rows)]
	}
	for _, g := range groups {
		one := record.NewFailureGroup(g, view.RetryGroup(o.filter, g.Key))
		switch {
		case p.JSON:
			err = p.Record(one)
		case o.format != nil:
			err = o.format.Record(one)
		case !p.Stdout.TTY:
			view.FailureLine(p, g)
		}
		if err != nil {
			return err
		}
	}
	if all == 0 {
		p.Note("no failed tasks")
		return view.WarnUnknown(ctx, r, p, o.filter)
	}
	if p.Stdout.TTY && !p.JSON && o.format == nil {
		p.Table(view.FailureTable(groups, p.Now(), o.wide))
		text := "%s in %s"
		if tasks == present.MaxGrouped {
			text = "the last " + text
		}
		p.Note(text+"; retry a group: %s", humanize.Plural(tasks, "failed task"), humanize.Plural(all, "group"),
			view.RetryGroup(o.filter, groups[0].Key))
	}
	return nil
}

func runList(ctx context.Context, r *runner.Runner, p *term.Printer, o listOptions) error {
	if o.group {
		return listGroups(ctx, r, p, o)
	}
	now := p.Now()
	var shown []jobs.Task // rows of the table; the table needs all rows first, because the widest cell decides the width of its column
	held, err := admin.ReadHolds(ctx, r)
	if err != nil {
		return err
	}
	n := 0
	each := eachTask
	if o.byDue {
		each = eachTaskByDue
	}
	err = each(ctx, r, o, func(t jobs.Task) error {
		n++
		switch {
		case p.JSON || o.format != nil:
			one, err := listRecord(ctx, r, t, now, o.reveal)
			switch {
			case err != nil:
				return err
			case p.JSON:
				return p.Record(one)
			}
			return o.format.Record(one)
		case p.Stdout.TTY:
			shown = append(shown, t)
		default:
			view.ListLine(p, t, held, now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(shown) > 0 {
		p.Table(view.ListTable(shown, held, now, o.wide))
	}
	if err := missingTasks(ctx, r, o.filter.IDs); err != nil {
		return err
	}
	if n == 0 {
		p.Note("no tasks")
		if err := view.WarnUnknown(ctx, r, p, o.filter); err != nil {
			return err
		}
	}
	if n > 0 && n == o.rows && p.Interactive() {
		p.Flush() // print the rows first, because counting may be slow
		all, err := r.Count(ctx, o.filter)
		if err != nil {
			return err
		}
		if all > n {
			p.Note("%s of %s tasks; -n 0 for all", humanize.Count(int64(n)), humanize.Count(int64(all)))
		}
	}
	return nil
}

// eachTask calls yield for each selected task. It reads page by page, so it holds no long read transaction and keeps only one page in
// memory.
func eachTask(ctx context.Context, r *runner.Runner, o listOptions, yield func(jobs.Task) error) error {
	const page = 1000
	filter, left := o.filter, o.rows
	for {
		limit := page
		if o.rows > 0 {
			limit = min(limit, left)
		}
		tasks, err := r.List(ctx, filter, runner.Page{Limit: limit, Oldest: o.oldest})
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if err := yield(t); err != nil {
				return err
			}
		}
		if left -= len(tasks); len(tasks) < limit || left == 0 {
			return nil
		}
		last := tasks[len(tasks)-1].ID
		if o.oldest {
			filter.After = last
		} else {
			filter.Before = last
		}
	}
}

// eachTaskByDue calls yield for each selected task in the order of due times. No index has this order, so eachTaskByDue collects the
// selected tasks and sorts them. It returns an error if more than 10,000 tasks are selected.
func eachTaskByDue(ctx context.Context, r *runner.Runner, o listOptions, yield func(jobs.Task) error) error {
	const most = 10_000
	var list []jobs.Task
	all := listOptions{filter: o.filter, rows: most + 1, oldest: true}
	err := eachTask(ctx, r, all, func(t jobs.Task) error { list = append(list, t); return nil })
	if err != nil {
		return err
	}
	if len(list) > most {
		return failure.Usage("more than %s tasks match; --sort due sorts at most that many", humanize.Count(most)).
			Hint("a selector: -q QUEUE, -s scheduled, --label TEXT")
	}
	slices.SortStableFunc(list, func(a, b jobs.Task) int { return a.RunAt.Compare(b.RunAt) })
	if o.oldest {
		slices.Reverse(list)
	}
	if o.rows > 0 {
		list = list[:min(len(list), o.rows)]
	}
	for _, t := range list {
		if err := yield(t); err != nil {
			return err
		}
	}
	return nil
}

// missingTasks returns an error that names the ids for which no task exists. It returns nil if all ids exist.
func missingTasks(ctx context.Context, r *runner.Runner, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	there, err := r.IDs(ctx, jobs.Filter{IDs: ids}, runner.Page{})
	if err != nil {
		return err
	}
	found := make(map[int64]bool, len(there))
	for _, id := range there {
		found[id] = true
	}
	if missing := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return found[id] }); len(missing) > 0 {
		return failure.NoTasks(missing)
	}
	return nil
}

func listRecord(ctx context.Context, r *runner.Runner, t jobs.Task, now time.Time, reveal bool) (any, error) {
	task := record.NewTask(t, now)
	if !reveal {
		return task, nil
	}
	input, err := view.ReadInput(ctx, r, t)
	return task.Reveal(t.Env, input), err
}
