package cli

import (
	"maps"
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// Selection describes the tasks that the user selected by ids, by a filter or
// with --all.
type Selection struct {
	Filter jobs.Filter
	All    bool

	olderThan  time.Duration
	selectors  []string // names of the selectors except --queue and --all
	isEmpty    bool     // whether the user selected nothing
	onlyQueues bool     // whether --queue is the only selector
}

// Options returns the options with which a user selects tasks, except those
// that mean something else to the command.
func (s *Selection) Options(a *App, except ...string) []Flag {
	f := &s.Filter
	metadata := (*taskspec.Texts)(&f.Metadata)
	list := Without(Group("Selector",
		Values(&f.Queues, "queue q", "NAME", "tasks of this queue; repeatable", One(ParseQueue)),
		Values(&f.States, "state s", "STATE,...",
			"tasks in these states; the words unfinished and finished mean all states of that kind", search.ParseStates),
		Values(&f.Jobs, "job j", "NAME", "tasks of this job, such as command or email.send; repeatable", One(ParseJob)),
		Text(&f.Label, "label", "TEXT", "tasks with this label"),
		Value(&f.Schedule, "schedule", "NAME", "tasks of this schedule", ParseScheduleName),
		Value(&f.Batch, "batch", "ID", "tasks of this batch (enqueue --each, --batch)", ParseID),
		Value(&f.Lane, "lane", "KEY", "tasks of this lane", ParseLane),
		Text(&f.Worker, "worker", "NAME", "tasks whose last attempt ran on this worker"),
		Value(metadata, "meta", "KEY=TEXT", "tasks that were enqueued with this --meta; repeatable, all must match",
			func(text string) (taskspec.Texts, error) {
				all := maps.Clone(*metadata)
				err := all.Parse(text, time.Time{})
				return all, err
			}),
		Text(&f.Match, "match", "TEXT", "tasks with TEXT in label, job, args or error; ASCII case is ignored"),
		a.When(&f.Since, "since",
			"finished tasks that ended at WHEN or later; unfinished tasks that were created at WHEN or later"),
		a.When(&f.Until, "until", "finished tasks that ended before WHEN; unfinished tasks that were created before WHEN"),
		Duration(&s.olderThan, "older-than", "tasks that finished more than DUR ago"),
		Bool(&s.All, "all", "all tasks; not allowed with other selectors"),
	), except...)
	for _, o := range list {
		if name := o.Names()[0]; name != "queue" && name != "all" {
			s.selectors = append(s.selectors, name)
		}
	}

	return list
}

// Read reads the ids among the arguments, and checks what the options selected.
func (s *Selection) Read(c *Context, a *App) (err error) {
	if s.Filter.IDs, err = ReadIDs(c.Args().Slice()); err != nil {
		return err
	}
	if c.IsSet("older-than") {
		s.Filter.FinishedBefore = a.Now().Add(-s.olderThan)
	}

	others := FirstSet(c, s.selectors...) != ""
	filtered := others || c.IsSet("queue")
	switch {
	case len(s.Filter.IDs) > 0 && (filtered || s.All):
		return ui.Exclusive("task ids", "selectors")
	case s.All && filtered:
		return ui.Exclusive("--all", "other selectors")
	}

	s.isEmpty, s.onlyQueues = len(s.Filter.IDs) == 0 && !filtered && !s.All, filtered && !others
	return nil
}

// WholeQueues returns the queues of a command that acts on queues as well as on
// tasks: with --queue as the only selector, or with --all. Otherwise it returns
// nil, and the command acts on tasks.
func (s Selection) WholeQueues() []string {
	switch {
	case s.All:
		return []string{admin.AllQueues}
	case s.onlyQueues:
		return slices.Compact(slices.Sorted(slices.Values(s.Filter.Queues)))
	}
	return nil
}

// ReadIDs parses words that have ids, and returns them in order, without
// duplicates.
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

// Require returns an error if the user selected nothing: a command acts on all
// tasks only with --all.
func (s Selection) Require(verb string) error {
	if !s.isEmpty {
		return nil
	}
	return ui.Usage("%s needs task ids or a selector", verb).
		Hint("runner %s 1042      runner %s -q media      runner %s --all", verb, verb, verb)
}

// Confirm asks the user before a command changes the n tasks that a filter
// selects, unless there's only one or the user typed the ids. A question is,
// for example, "Cancel 118 tasks in media?". Without a terminal, --yes is
// required.
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
