package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// selection is which tasks a command means: ids, or a filter, or --all (cli.md 4).
type selection struct {
	filter jobs.Filter
	all    bool // --all was typed
	empty  bool // nothing was typed
}

// selectors are the options of every command that takes tasks.
func (a *app) selectors() []cli.Flag {
	return []cli.Flag{
		queueOption(),
		repeated("state s", "STATE,...", "tasks in these states; also: unfinished, finished", search.ParseStates),
		repeated("job j", "NAME", "tasks of this job: command, email.send; repeatable", one(parseJob)),
		textOption("label", "TEXT", "tasks with this label", ""),
		scalar("schedule", "NAME", "tasks of this schedule", "", parseScheduleName),
		scalar("lane", "KEY", "tasks of this lane", "", parseLane),
		textOption("worker", "NAME", "tasks that ran last on this worker", ""),
		textOption("match", "TEXT", "part of label, job, args or error; ASCII case ignored", ""),
		a.whenOption("since", "finished since then; unfinished ones: created since then"),
		a.whenOption("until", "the same, until then"),
		durationOption("older-than", "finished longer ago than this", 0),
		boolOption("all", "every task: no other filter"),
	}
}

// readSelection reads the ids among the words, and the options of selectors, but for those that mean something else to the
// command.
func readSelection(c *cli.Context, now time.Time, except ...string) (selection, error) {
	var s selection
	ids, err := readIDs(c.Args().Slice())
	if err != nil {
		return s, err
	}
	f := jobs.Filter{
		Queues: get[[]string](c, "queue"), States: get[[]jobs.State](c, "state"), Jobs: get[[]string](c, "job"),
		Label: get[string](c, "label"), Lane: get[string](c, "lane"), Schedule: get[string](c, "schedule"), Worker: get[string](c, "worker"),
		Match: get[string](c, "match"),
		Since: get[time.Time](c, "since"), Until: get[time.Time](c, "until"),
	}
	if c.IsSet("older-than") {
		f.FinishedBefore = now.Add(-get[time.Duration](c, "older-than"))
	}
	filtered := slices.ContainsFunc([]string{"queue", "state", "job", "label", "lane", "schedule", "worker", "match", "since", "until",
		"older-than"},
		func(name string) bool { return c.IsSet(name) && !slices.Contains(except, name) })
	if slices.Contains(except, "since") {
		f.Since = time.Time{}
	}
	s.all = get[bool](c, "all")
	switch {
	case len(ids) > 0 && (filtered || s.all):
		return s, failure.Usage("task ids and filters exclude each other")
	case s.all && filtered:
		return s, failure.Usage("--all and filters exclude each other")
	}
	f.IDs = ids
	s.filter, s.empty = f, len(ids) == 0 && !filtered && !s.all
	return s, nil
}

// readIDs reads words as IDS. Each id is kept once, in the order of the words.
func readIDs(words []string) ([]int64, error) {
	var ids []int64
	seen := map[int64]bool{}
	for _, word := range words {
		more, err := parseIDs(word)
		if err != nil {
			return nil, failure.Usage("%q %v", word, err)
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

// typed returns an error if nothing was selected: no verb acts on everything unless --all is typed.
func (s selection) typed(verb string) error {
	if !s.empty {
		return nil
	}
	return failure.Usage("%s needs task ids or a filter", verb).
		Hint("runner %s 1042      runner %s -q media      runner %s --all", verb, verb, verb)
}

// sure asks before a filter changes n tasks: question is "Cancel 118 tasks in media?". One task is no question, nor are
// ids. Where nobody can be asked, --yes is needed.
func (s selection) sure(p *term.Printer, yes bool, n int, question string) error {
	switch {
	case yes || n <= 1 || len(s.filter.IDs) > 0:
		return nil
	case !p.CanAsk:
		return failure.Usage("the filter matches %s tasks, and nobody can be asked", humanize.Count(int64(n))).
			Because("nothing was changed").Hint("--yes, or --dry-run to see them")
	case p.Confirm("%s", question):
		return nil
	}
	p.Say("nothing was changed")
	return failure.ExitStatus(1)
}
