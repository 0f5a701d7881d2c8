package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/search"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// steering is what cancel, retry and delete have in common: which tasks, and whether to ask.
type steering struct {
	verb, done  string // cancel, cancelled
	selection   cli.Selection
	nothing     bool // no task that the filter selects is one for the verb
	yes, dryRun bool
}

// steerMost is how many tasks are changed, and then told, in one go.
const steerMost = 500

func steeringOptions(a *cli.App, more ...cli.Flag) []cli.Flag {
	return append(append(more, a.Selectors()...), cli.DryRunOption(), cli.YesOption())
}

func readSteering(c *cli.Context, now time.Time, verb, done string) (steering, error) {
	s, err := cli.ReadSelection(c, now)
	if err == nil {
		err = s.Require(verb)
	}
	return steering{verb: verb, done: done, selection: s, yes: cli.Get[bool](c, "yes"), dryRun: cli.Get[bool](c, "dry-run")}, err
}

// only makes a filter select what the verb is for.
func (s *steering) only() {
	only, ok := search.Verb(s.verb).Filter(s.selection.Filter)
	s.selection.Filter, s.nothing = only, !ok
}

// tasks returns the ids of the tasks that are meant, newest first or as they were typed, after asking.
func (s *steering) tasks(ctx context.Context, r *runner.Runner, p *term.Printer) ([]int64, error) {
	f := s.selection.Filter
	if len(f.IDs) > 0 {
		return f.IDs, nil
	}
	var ids []int64
	var err error
	if !s.nothing {
		ids, err = r.IDs(ctx, f, runner.Page{})
	}
	switch {
	case err != nil:
	case len(ids) == 0:
		p.Note("no tasks")
	case !s.dryRun:
		err = s.selection.Confirm(p, s.yes, len(ids), s.question(ids))
	}
	return ids, err
}

// question is "Retry 2 tasks: 1037 1036?" or "Cancel 118 tasks in media?".
func (s *steering) question(ids []int64) string {
	text := strings.ToUpper(s.verb[:1]) + s.verb[1:] + " " + tasksText(len(ids))
	if queues := s.selection.Filter.Queues; len(queues) > 0 {
		text += " in " + strings.Join(queues, ", ")
	}
	if len(ids) <= 8 {
		text += ":"
		for _, id := range ids {
			text += " " + strconv.FormatInt(id, 10)
		}
	}
	return text + "?"
}

// preview is --dry-run: the tasks as they are. refusal says why one would be left alone.
func (s *steering) preview(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64, refusal func(jobs.Task) string) error {
	out := newOutcomes(p, s, ids)
	for part := range slices.Chunk(ids, steerMost) {
		tasks, err := tasksByID(ctx, r, part)
		if err != nil {
			return err
		}
		for _, id := range part {
			t, there := tasks[id]
			switch why := refusal(t); {
			case !there:
				out.missing = append(out.missing, id)
			case why != "":
				out.refuse(t.ID, string(t.State), why, s.record(p, t))
			default:
				out.line(t.ID, string(t.State), present.JobText(t), s.record(p, t))
			}
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	if len(ids) > 0 {
		p.Note("%s would be %s; nothing was changed", tasksText(len(ids)), s.done)
	}
	return nil
}

func (s *steering) record(p *term.Printer, t jobs.Task) any {
	if s.verb == "delete" {
		return record.Deleted{ID: t.ID}
	}
	return record.NewTask(t, p.Now())
}

func tasksByID(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
	list, err := r.List(ctx, jobs.Filter{IDs: ids}, runner.Page{})
	tasks := make(map[int64]jobs.Task, len(list))
	for _, t := range list {
		tasks[t.ID] = t
	}
	return tasks, err
}

func tasksText(n int) string {
	if n == 1 {
		return "1 task"
	}
	return humanize.Count(int64(n)) + " tasks"
}

// outcomes prints a line for each task, and keeps what could not be done for the end.
type outcomes struct {
	p       *term.Printer
	s       *steering
	width   int // of the widest id
	lines   int
	refused []refusal
	missing []int64
}

type refusal struct {
	id  int64
	why string
}

// outcomeLines is how many lines a terminal gets.
const outcomeLines = 20

func newOutcomes(p *term.Printer, s *steering, ids []int64) *outcomes {
	o := &outcomes{p: p, s: s}
	for _, id := range ids {
		o.width = max(o.width, len(strconv.FormatInt(id, 10)))
	}
	return o
}

// line tells the state of a task: as a record, as id and state, or for people with a remark.
func (o *outcomes) line(id int64, state, remark string, record any) {
	o.lines++
	number := strconv.FormatInt(id, 10)
	switch {
	case o.p.JSON:
		_ = o.p.Record(record) // what cannot be written to stdout is told by the last flush
	case !o.p.Stdout.TTY:
		o.p.Fields(number, state)
	case o.lines <= outcomeLines:
		text := fmt.Sprintf("%*s  ", o.width, number)
		left := o.p.Stdout.Width - term.Cells(text) - 9 - len(term.Gap)
		text += o.p.Stdout.Paint(term.StateColour(state), state)
		if remark = term.Cut(humanize.Safe(remark), left); remark != "" {
			text += strings.Repeat(" ", max(9-len(state), 0)) + term.Gap + remark
		}
		o.p.Print(text + "\n")
	}
}

// refuse tells that a task was left alone.
func (o *outcomes) refuse(id int64, state, why string, record any) {
	o.line(id, state, "not "+o.s.done+": "+why, record)
	o.refused = append(o.refused, refusal{id, why})
}

// end tells how many lines were not shown, and returns the failure that stands for tasks which do not exist or were refused.
func (o *outcomes) end() error {
	if o.lines > outcomeLines && o.p.Stdout.TTY && !o.p.JSON {
		o.p.Print("and " + humanize.Count(int64(o.lines-outcomeLines)) + " more\n")
	}
	missing := ""
	for i, id := range o.missing {
		if i == 10 {
			missing += fmt.Sprintf(" and %d more", len(o.missing)-i)
			break
		}
		missing += ", " + strconv.FormatInt(id, 10)
	}
	missing = "no task " + strings.TrimPrefix(missing, ", ")
	f := &failure.Error{Code: "conflict", Exit: 1}
	switch len(o.refused) {
	case 0:
		if len(o.missing) == 0 {
			return nil
		}
		return (&failure.Error{Code: "not_found", Exit: 3, What: missing}).Hint("runner list")
	case 1:
		f.What = fmt.Sprintf("task %d was not %s: %s", o.refused[0].id, o.s.done, o.refused[0].why)
	default:
		f.What = fmt.Sprintf("%s were not %s", tasksText(len(o.refused)), o.s.done)
		for i, one := range o.refused {
			if i == 2 {
				f.Because(fmt.Sprintf("and %d more", len(o.refused)-i))
				break
			}
			f.Because(fmt.Sprintf("%d: %s", one.id, one.why))
		}
	}
	if len(o.missing) > 0 {
		f.Because(missing)
	}
	if o.refused[0].why == whyRunning || o.s.verb == "delete" {
		f.Hint("runner cancel %d", o.refused[0].id)
	}
	return f
}

const whyRunning = "it is running"
