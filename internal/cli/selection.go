package cli

import (
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Selection describes the tasks that the user selected by ids, by a filter or with --all.
type Selection struct {
	Filter jobs.Filter
	All    bool // whether --all was given
	empty  bool // whether the user selected nothing

	onlyQueues bool // whether --queue is the only selector
}

// Selectors returns the options with which a user selects tasks.
func (a *App) Selectors() []Flag {
	metadata := new(taskspec.Texts)
	return Group("Selector",
		Repeated("queue q", "NAME", "tasks of this queue; repeatable", One(ParseQueue)),
		Repeated("state s", "STATE,...", "tasks in these states; the words unfinished and finished mean all states of that kind",
			search.ParseStates),
		Repeated("job j", "NAME", "tasks of this job, such as command or email.send; repeatable", One(ParseJob)),
		TextOption("label", "TEXT", "tasks with this label", ""),
		Scalar("schedule", "NAME", "tasks of this schedule", "", ParseScheduleName),
		Scalar("batch", "ID", "tasks of this batch (enqueue --each, --batch)", 0, ParseID),
		Scalar("lane", "KEY", "tasks of this lane", "", ParseLane),
		TextOption("worker", "NAME", "tasks whose last attempt ran on this worker", ""),
		Scalar("meta", "KEY=TEXT", "tasks that were enqueued with this --meta; repeatable, all must match", metadata,
			func(text string) (*taskspec.Texts, error) { return metadata, metadata.Parse(text, time.Time{}) }),
		TextOption("match", "TEXT", "tasks with TEXT in label, job, args or error; ASCII case is ignored", ""),
		a.WhenOption("since", "finished tasks that ended at WHEN or later; unfinished tasks that were created at WHEN or later"),
		a.WhenOption("until", "finished tasks that ended before WHEN; unfinished tasks that were created before WHEN"),
		DurationOption("older-than", "tasks that finished more than DUR ago", 0),
		BoolOption("all", "all tasks; not allowed with other selectors"),
	)
}

// ReadSelection reads the selected tasks from the command line: the ids, and the options of Selectors. The parameter "except" names options
// that it skips, because they have another meaning for the command.
func ReadSelection(c *Context, now time.Time, except ...string) (Selection, error) {
	var s Selection
	ids, err := ReadIDs(c.Args().Slice())
	if err != nil {
		return s, err
	}
	f := jobs.Filter{
		Queues: Get[[]string](c, "queue"), States: Get[[]jobs.State](c, "state"), Jobs: Get[[]string](c, "job"),
		Label: Get[string](c, "label"), Lane: Get[string](c, "lane"), Schedule: Get[string](c, "schedule"),
		Worker: Get[string](c, "worker"), Batch: Get[int64](c, "batch"),
		Match: Get[string](c, "match"), Metadata: *Get[*taskspec.Texts](c, "meta"),
		Since: Get[time.Time](c, "since"), Until: Get[time.Time](c, "until"),
	}
	if c.IsSet("older-than") {
		f.FinishedBefore = now.Add(-Get[time.Duration](c, "older-than"))
	}
	others := slices.ContainsFunc([]string{"state", "job", "label", "lane", "schedule", "batch", "worker", "meta", "match", "since",
		"until", "older-than"},
		func(name string) bool { return c.IsSet(name) && !slices.Contains(except, name) })
	filtered := others || c.IsSet("queue")
	if slices.Contains(except, "since") {
		f.Since = time.Time{}
	}
	s.All = Get[bool](c, "all")
	switch {
	case len(ids) > 0 && (filtered || s.All):
		return s, ui.Exclusive("task ids", "selectors")
	case s.All && filtered:
		return s, ui.Exclusive("--all", "other selectors")
	}
	f.IDs = ids
	s.Filter, s.empty, s.onlyQueues = f, len(ids) == 0 && !filtered && !s.All, filtered && !others
	return s, nil
}

// WholeQueues returns the queues of a command that acts on queues as well as on
// tasks: with --queue as the only selector, or with --all. Otherwise it returns
// nil, and the command acts on tasks.
func (s Selection) WholeQueues() []string {
	switch {
	case s.All:
		return []string{runner.AllQueues}
	case s.onlyQueues:
		return slices.Compact(slices.Sorted(slices.Values(s.Filter.Queues)))
	}
	return nil
}

// ReadIDs parses words that contain ids. It returns the ids in the order of the words, without duplicates.
func ReadIDs(words []string) ([]int64, error) {
	var ids []int64
	seen := map[int64]bool{}
	for _, word := range words {
		more, err := taskspec.ParseIDs(word)
		if err != nil {
			return nil, ui.Usage("%q: %v", word, err)
		}
		for _, id := range more {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// Require returns an error if the user selected no tasks. A command changes all tasks only with --all.
func (s Selection) Require(verb string) error {
	if !s.empty {
		return nil
	}
	return ui.Usage("%s needs task ids or a selector", verb).
		Hint("runner %s 1042      runner %s -q media      runner %s --all", verb, verb, verb)
}

// Confirm asks the user before a command changes the n tasks that a filter selects. A question is, for example, "Cancel 118 tasks in
// media?". Confirm does not ask if there is only one task, or if the user typed the ids. Without a terminal the user must give --yes, or
// Confirm returns an error.
func (s Selection) Confirm(p *ui.Printer, yes bool, n int, question string) error {
	switch {
	case yes || n <= 1 || len(s.Filter.IDs) > 0:
		return nil
	case !p.CanAsk:
		return ui.Usage("%s tasks match and there is no terminal to confirm", humanize.Count(int64(n))).
			Because("nothing was changed").Hint("--yes, or --dry-run to list them")
	case p.Confirm("%s", question):
		return nil
	}
	p.Say("nothing was changed")
	return ui.ExitStatus(1)
}
