// Package bulk contains what the commands that change many tasks have in common: the selection of tasks, the confirmation, the preview, and
// a line for each task.
package bulk

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

// Action contains the settings of a command that changes tasks: how the user selected the tasks, and whether to ask for confirmation.
type Action struct {
	Verb, Done  string // the verb in two forms, such as "cancel" and "cancelled"
	Selection   cli.Selection
	Group       string // key of a group of similar failed tasks, if only tasks of this group are selected; empty otherwise
	Nothing     bool   // true if the command changes no task in any of the states that the user selected
	yes, DryRun bool
}

// BatchSize is the maximum number of tasks that one call of Change.Apply changes. After each call, the command prints the lines of the
// tasks.
const BatchSize = 500

func Options(a *cli.App, more ...cli.Flag) []cli.Flag {
	return append(append(more, a.Selectors()...), cli.DryRunOption(), cli.YesOption())
}

func Read(c *cli.Context, now time.Time, verb, done string) (Action, error) {
	s, err := cli.ReadSelection(c, now)
	if err == nil {
		err = s.Require(verb)
	}
	return Action{Verb: verb, Done: done, Selection: s, yes: cli.Get[bool](c, "yes"), DryRun: cli.Get[bool](c, "dry-run")}, err
}

// ReadGroup does the same as Read for a command with the option --group. If the user gives a group, no other selector is necessary.
func ReadGroup(c *cli.Context, now time.Time, verb, done string) (Action, error) {
	key := cli.Get[string](c, "group")
	if key == "" {
		return Read(c, now, verb, done)
	}
	s, err := cli.ReadSelection(c, now)
	if f := s.Filter; err == nil && (len(f.IDs) > 0 || len(f.States) > 0) {
		err = failure.Exclusive("--group", "task ids and --state")
	}
	return Action{Verb: verb, Done: done, Selection: s, Group: key, yes: cli.Get[bool](c, "yes"), DryRun: cli.Get[bool](c, "dry-run")}, err
}

// OnlyEligible removes from the selection the tasks that the command cannot change. It does not change a selection by ids.
func (s *Action) OnlyEligible() {
	only, ok := search.Verb(s.Verb).Filter(s.Selection.Filter)
	s.Selection.Filter, s.Nothing = only, !ok
}

// Tasks returns the ids of the selected tasks, newest first or in the order of the arguments. It asks for confirmation if necessary.
func (s *Action) Tasks(ctx context.Context, r *runner.Runner, p *term.Printer) ([]int64, error) {
	f := s.Selection.Filter
	if len(f.IDs) > 0 {
		return f.IDs, nil
	}
	var ids []int64
	var err error
	switch {
	case s.Nothing:
	case s.Group != "":
		ids, err = present.FailureIDs(ctx, r, f, s.Group)
	default:
		ids, err = r.IDs(ctx, f, runner.Page{})
	}
	switch {
	case err != nil:
	case len(ids) == 0:
		p.Note("no tasks")
	case !s.DryRun:
		err = s.Selection.Confirm(p, s.yes, len(ids), s.question(ids))
	}
	return ids, err
}

// question returns the question that asks for confirmation, such as "Retry 2 tasks: 1037 1036?" or "Cancel 118 tasks in media?".
func (s *Action) question(ids []int64) string {
	text := strings.ToUpper(s.Verb[:1]) + s.Verb[1:] + " " + tasksText(len(ids))
	if queues := s.Selection.Filter.Queues; len(queues) > 0 {
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

// Preview implements --dry-run: it prints the selected tasks without changing them.
func (s *Action) Preview(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64, change Change) error {
	out := NewOutcomes(p, s, ids)
	for part := range slices.Chunk(ids, BatchSize) {
		tasks, err := TasksByID(ctx, r, part)
		if err != nil {
			return err
		}
		var needed map[int64]int64
		if change.Needed != nil {
			if needed, err = change.Needed(ctx, part); err != nil {
				return err
			}
		}
		for _, id := range part {
			t, there := tasks[id]
			switch why, by := change.Refusal(t), needed[id]; {
			case !there:
				out.Missing = append(out.Missing, id)
			case why == "" && by != 0:
				out.Leave(t.ID, string(t.State), by, s.Record(p, t))
			case why != "":
				out.Refuse(t.ID, string(t.State), why, s.Record(p, t))
			default:
				out.Line(t.ID, string(t.State), present.JobText(t), s.Record(p, t))
			}
		}
	}
	if err := out.End(); err != nil {
		return err
	}
	if len(ids) > 0 {
		p.Note("%s would be %s; nothing was changed", tasksText(len(ids)-len(out.left)), s.Done)
	}
	return nil
}

func (s *Action) Record(p *term.Printer, t jobs.Task) term.Record {
	if s.Verb == "delete" {
		return record.Deleted(t.ID, false)
	}
	return record.NewTask(t, p.Now())
}

func TasksByID(ctx context.Context, r *runner.Runner, ids []int64) (map[int64]jobs.Task, error) {
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

// Outcomes prints a line for each task and collects the tasks that could not be changed.
type Outcomes struct {
	p       *term.Printer
	s       *Action
	width   int // width of the widest id
	lines   int
	refused []refusal
	left    []refusal // what a selector matched and Leave was called for
	Missing []int64
}

type refusal struct {
	id  int64
	why string
	by  int64 // the task that depends on it, if that is why
}

// ShownLines is the maximum number of tasks that are printed to a terminal.
const ShownLines = 20

func NewOutcomes(p *term.Printer, s *Action, ids []int64) *Outcomes {
	o := &Outcomes{p: p, s: s}
	for _, id := range ids {
		o.width = max(o.width, len(strconv.FormatInt(id, 10)))
	}
	return o
}

// Line prints the result for a task. With --json it prints a record. On a terminal it prints the id, the state and a remark. Elsewhere it
// prints only the id and the state.
func (o *Outcomes) Line(id int64, state, remark string, record term.Record) {
	o.lines++
	text := ""
	if o.lines <= ShownLines {
		text = o.text(id, state, remark)
	}
	_ = o.p.Answer(record, text, id, state) // ignore the error, because Flush will return it again
}

// text returns the result for a task for people.
func (o *Outcomes) text(id int64, state, remark string) string {
	text := fmt.Sprintf("%*d  ", o.width, id)
	left := o.p.Stdout.Width - term.Cells(text) - 9 - len(term.Gap)
	text += o.p.Stdout.Paint(term.StateColour(state), state)
	if remark = term.Cut(humanize.Safe(remark), left); remark != "" {
		text += strings.Repeat(" ", max(9-len(state), 0)) + term.Gap + remark
	}
	return text + "\n"
}

// Refuse prints that the command has not changed a task, and why.
func (o *Outcomes) Refuse(id int64, state, why string, record term.Record) {
	o.Line(id, state, "not "+o.s.Done+": "+why, record)
	o.refused = append(o.refused, refusal{id: id, why: why})
}

// Leave prints that a task stays because task by depends on it. If the user
// typed no ids, that is no error: End only says how many tasks stay.
func (o *Outcomes) Leave(id int64, state string, by int64, record term.Record) {
	one := refusal{id, fmt.Sprintf("task %d needs its result", by), by}
	if len(o.s.Selection.Filter.IDs) == 0 {
		o.left = append(o.left, one)
		return
	}
	o.Line(id, state, "not "+o.s.Done+": "+one.why, record)
	o.refused = append(o.refused, one)
}

// End prints how many tasks were left out because of ShownLines. It returns an error if tasks do not exist or were not changed.
func (o *Outcomes) End() error {
	if o.lines > ShownLines && o.p.ForPeople() {
		o.p.Print("and " + humanize.Count(int64(o.lines-ShownLines)) + " more\n")
	}
	switch n := len(o.left); {
	case n == 1:
		o.p.Say("task %d stays: %s", o.left[0].id, o.left[0].why)
	case n > 1:
		o.p.Say("%s stay, because unfinished tasks need their results, such as %d: %s", tasksText(n), o.left[0].id, o.left[0].why)
	}
	f := &failure.Error{Code: "conflict", Exit: 1}
	switch len(o.refused) {
	case 0:
		if len(o.Missing) == 0 {
			return nil
		}
		return failure.NoTasks(o.Missing)
	case 1:
		f.What = fmt.Sprintf("task %d was not %s: %s", o.refused[0].id, o.s.Done, o.refused[0].why)
	default:
		f.What = fmt.Sprintf("%s were not %s", tasksText(len(o.refused)), o.s.Done)
		for i, one := range o.refused {
			if i == 2 {
				f.Because(fmt.Sprintf("and %d more", len(o.refused)-i))
				break
			}
			f.Because(fmt.Sprintf("%d: %s", one.id, one.why))
		}
	}
	if len(o.Missing) > 0 {
		f.Because(failure.NoTasks(o.Missing).What)
	}
	switch {
	case o.refused[0].by != 0:
		f.Hint("runner cancel %d, or wait until it has ended", o.refused[0].by)
	case o.refused[0].why == whyLeft:
		f.Hint("runner work")
	case o.refused[0].why == WhyRunning || o.s.Verb == "delete":
		f.Hint("runner cancel %d", o.refused[0].id)
	case o.refused[0].why == whyFinished:
		f.Hint("runner retry %d", o.refused[0].id)
	}
	return f
}

// These are reasons why a command does not change a task.
const (
	WhyRunning  = "it is running"
	whyFinished = "it has finished"
)

// WhyNotWaiting returns the reason why the commands edit, pause and resume do not change a task in this state. The reason is empty if
// the task is waiting.
func WhyNotWaiting(s jobs.State) string {
	switch {
	case s == jobs.Running:
		return WhyRunning
	case s.Finished():
		return whyFinished
	}
	return ""
}

// Remark returns what the commands edit --first, pause and resume print about a task: that it is paused, or its priority.
func Remark(t jobs.Task) string {
	if !t.PausedAt.IsZero() {
		return "paused"
	}
	return fmt.Sprintf("priority %d", t.Priority)
}
