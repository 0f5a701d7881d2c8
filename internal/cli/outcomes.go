package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// Outcomes prints a line for each task and collects the tasks that could not be
// changed.
type Outcomes struct {
	p          *ui.Printer
	verb, done string
	width      int // width of the widest id
	lines      int
	notes      int
	refused    []refusal
	Missing    []int64
}

type refusal struct {
	id    int64
	state jobs.State
	why   string
}

// ShownLines is the maximum number of tasks that are printed to a terminal.
const ShownLines = 20

// NewOutcomes takes the verb in two forms, such as "cancel" and "cancelled".
func NewOutcomes(p *ui.Printer, verb, done string, ids []int64) *Outcomes {
	o := &Outcomes{p: p, verb: verb, done: done}
	for _, id := range ids {
		o.width = max(o.width, len(strconv.FormatInt(id, 10)))
	}
	return o
}

// Line prints the result for a task. With --json it prints a record. On a
// terminal it prints the id, the state and a remark, elsewhere id and state.
// state is that of the change; t may have a later one.
func (o *Outcomes) Line(t jobs.Task, state jobs.State, remark string) {
	var rec ui.Record
	if o.verb == "delete" {
		rec = ui.Deleted(t.ID, state == Deleted)
	} else {
		rec = ui.NewTask(t, o.p.Now())
	}

	o.lines++
	text := ""
	if o.lines <= ShownLines {
		text = o.text(t.ID, string(state), remark)
	}
	_ = o.p.Answer(rec, text, t.ID, string(state)) // ignore the error, because Flush will return it again
}

// Deleted is what Line shows for a deleted task; no task has this state.
const Deleted jobs.State = "deleted"

// text returns the result for a task for people.
func (o *Outcomes) text(id int64, state, remark string) string {
	text := fmt.Sprintf("%*d  ", o.width, id)
	left := o.p.Stdout.Width - ui.Cells(text) - 9 - len(ui.Gap)
	text += o.p.Stdout.Paint(ui.StateColour(state), state)
	if remark = ui.Cut(humanize.Safe(remark), left); remark != "" {
		text += strings.Repeat(" ", max(9-len(state), 0)) + ui.Gap + remark
	}
	return text + "\n"
}

// Refuse prints that the command has not changed a task, and why.
func (o *Outcomes) Refuse(t jobs.Task, state jobs.State, why string) {
	o.Line(t, state, "not "+o.done+": "+why)
	o.refused = append(o.refused, refusal{t.ID, state, why})
}

// Note says on stderr what else is to know about a task.
func (o *Outcomes) Note(format string, args ...any) {
	if o.notes++; o.notes <= ShownLines {
		o.p.Say(format, args...)
	}
}

// End prints how many tasks and notes were left out because of ShownLines. It
// returns an error if tasks do not exist or were not changed.
func (o *Outcomes) End() error {
	if o.lines > ShownLines && o.p.ForPeople() {
		o.p.Print("and " + humanize.Count(int64(o.lines-ShownLines)) + " more\n")
	}
	if more := o.notes - ShownLines; more > 0 {
		o.p.Say("and %s", humanize.Plural(more, "more note"))
	}

	switch {
	case len(o.refused) == 0 && len(o.Missing) == 0:
		return nil
	case len(o.refused) == 0:
		return ui.NoTasks(o.Missing)
	}

	first := o.refused[0]
	f := &ui.Error{Code: "conflict", Exit: 1, What: fmt.Sprintf("task %d was not %s: %s", first.id, o.done, first.why)}
	if n := len(o.refused); n > 1 {
		f.What = fmt.Sprintf("%s were not %s", tasksText(n), o.done)
		for _, one := range o.refused[:min(n, 3)] {
			f.Because(fmt.Sprintf("%d: %s", one.id, one.why))
		}
	}
	if len(o.Missing) > 0 {
		f.Because(ui.NoTasks(o.Missing).What)
	}

	switch {
	case first.why == WhyRunning, o.verb == "delete" && !first.state.Finished():
		f.Hint("runner cancel %d", first.id)
	case first.why == whyFinished:
		f.Hint("runner retry %d", first.id)
	}

	return f
}

// These are reasons why a command does not change a task.
const (
	WhyRunning  = "it is running"
	whyFinished = "it has finished"
)

// WhyNotWaiting returns why edit, pause and resume do not change a task in this
// state. It returns an empty string if the task is waiting.
func WhyNotWaiting(s jobs.State) string {
	switch {
	case s == jobs.Running:
		return WhyRunning
	case s.Finished():
		return whyFinished
	}
	return ""
}

// ForEach calls change for each of the given things, such as schedules. It goes
// on after a thing that doesn't exist, and names these at the end.
func ForEach[T any](list []T, kind string, change func(T) error) error {
	var missing []string
	for _, one := range list {
		switch err := change(one); {
		case errors.Is(err, jobs.ErrNotFound):
			missing = append(missing, fmt.Sprint(one))
		case err != nil:
			return err
		}
	}

	if missing == nil {
		return nil
	}

	return ui.NotFound("runner "+kind+" list", "no %s %s", kind, strings.Join(missing, ", "))
}
