package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Draw prints a task for a terminal.
func (s *Task) Draw(p *Printer) {
	t := s.Task
	p.Print(fmt.Sprintf("task %d   %s   %s\n", t.ID, p.Stdout.Paint(StateColour(string(t.State)), string(t.State)),
		humanize.Safe(Headline(t, s.Now))))
	printFields(p, s.fields())
	s.drawChanges(p)
	s.drawSteps(p)
	s.drawAttempts(p)
	if len(s.Tail) > 0 {
		p.Print("\n")
		if t.State == jobs.Running {
			p.Print("  the attempt before ended with\n")
		}
		for _, line := range s.Tail {
			p.Print("  " + Cut(humanize.Safe(line), p.Stdout.Width-2) + "\n")
		}
	} else if p.Interactive() {
		p.Print("\n")
	}
	p.Note("  %s", strings.Join(s.hints(), "     "))
}

// inputMost is how many bytes of the input Draw prints.
const inputMost = 4 << 10

// field is a key and its value. Fields without a value aren't printed.
type field struct{ key, value string }

// printFields prints each field on a line. It aligns a value of several lines.
func printFields(p *Printer, fields []field) {
	const key = 10
	for _, f := range fields {
		if f.value != "" {
			value := strings.ReplaceAll(humanize.SafeLines(f.value), "\n", "\n"+strings.Repeat(" ", 2+key))
			p.Print(fmt.Sprintf("  %-*s%s\n", key, f.key, value))
		}
	}
}

// fields returns the fields of a task.
func (s *Task) fields() []field {
	t := s.Task
	created := fmt.Sprintf("%s (%s ago)", t.CreatedAt.Local().Format(time.DateTime), humanize.Age(s.Now.Sub(t.CreatedAt)))
	if t.CreatedBy != "" {
		created += " by " + t.CreatedBy
	}
	schedule, expires, failure := t.Schedule, "", ""
	if !t.Tick.IsZero() {
		schedule += ", tick of " + t.Tick.Local().Format(time.DateTime)
	} else if schedule != "" {
		schedule += " (run by hand)"
	}
	if !t.ExpiresAt.IsZero() && t.StartedAt.IsZero() {
		expires = humanize.Clock(t.ExpiresAt, s.Now)
	}
	// The table of attempts has the exit status or the signal of a command.
	if t.Reason != jobs.ReasonExit && t.Reason != jobs.ReasonSignal {
		failure = t.Error
	}
	list := append(s.definition(),
		field{"created", created},
		field{"schedule", schedule},
		field{"unique", t.UniqueKey},
		field{"after", dependencyText(s.on)},
		field{"before", dependencyText(s.by)},
		field{"expires", expires},
		field{"result", compact(t.Result)},
		field{"error", failure},
		field{"processes", LeftBehind(&t)},
		field{"why", s.Why},
		field{"progress", Progress(t.Progress)},
		field{"used", Used(t.Usage)},
	)
	for _, p := range s.Outlived {
		list = append(list, field{"outlived", fmt.Sprintf("by process %d (%s, state %s, user %d)", p.PID, p.Name, p.State, p.UID)})
	}
	return list
}

// definition returns what a task runs, its options that don't have their
// defaults, and its input.
func (s *Task) definition() []field {
	t := s.Task
	what := field{"job", t.Job}
	args, batch := compact(t.Args), ""
	if t.Job == jobs.CommandJob {
		what, args = field{"command", taskspec.Describe(t)}, ""
	}
	if t.Batch != 0 {
		batch = fmt.Sprint(t.Batch)
	}
	return []field{
		{"label", t.Label},
		what,
		{"args", args},
		{"path", t.Path},
		{"cwd", t.Cwd},
		{"queue", t.Queue},
		{"priority", fmt.Sprint(t.Priority)},
		{"lane", t.Lane},
		{"batch", batch},
		{"options", strings.Join(s.options(), ", ")},
		{"input", humanize.Cut(strings.TrimRight(string(s.Input), "\n"), inputMost)},
	}
}

// dependenciesMost is the greatest number of dependencies that Draw lists for a task. It applies to dependents, too.
const dependenciesMost = 10

// dependencyText returns a list of tasks as text, such as "1036 completed, 1037 running (any end)".
func dependencyText(list []runner.Dependency) string {
	var parts []string
	for i, d := range list {
		if i == dependenciesMost {
			parts = append(parts, "and "+humanize.Count(int64(len(list)-i))+" more")
			break
		}
		part := fmt.Sprintf("%d %s", d.ID, cmp.Or(string(d.State), "deleted"))
		if d.Any {
			part += " (any end)"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// options returns the size of a task's input, and the options that do not have their defaults, as texts.
func (s *Task) options() []string {
	spec := taskspec.SpecOf(&s.Task)
	list := taskspec.Chosen(&spec, s.Reveal)
	if s.Task.InputBytes > 0 {
		list = append(list, "input "+humanize.Size(s.Task.InputBytes))
	}
	return list
}

// lastAttempts is how many attempts, and how many steps, the command show prints.
const lastAttempts = 20

// latest returns the last attempts or steps of a task, and a line that counts
// the others.
func latest[T any](id int64, what string, list []T) (last []T, before string) {
	hidden := max(len(list)-lastAttempts, 0)
	if hidden > 0 {
		before = fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, what), id)
	}
	return list[hidden:], before
}

func (s *Task) drawAttempts(p *Printer) {
	t := Table{Columns: []Column{{Name: "  TRY", AlignRight: true}, {Name: "STARTED", DropOrder: 2},
		{Name: "TIME", AlignRight: true}, {Name: "CPU", AlignRight: true, DropOrder: 3}, {Name: "MEMORY", AlignRight: true, DropOrder: 4},
		{Name: "RESULT"}, {Name: "WORKER", DropOrder: 1}, {Name: "OUTPUT", AlignRight: true}, {Name: "ERROR", DropOrder: 1}}}
	last, before := latest(s.Task.ID, "attempt", s.Attempts)
	for _, a := range last {
		result := string(a.State)
		if a.State == jobs.Failed {
			result = Ending(a.Reason, a.ExitCode, a.Signal)
		}
		output := humanize.Size(a.OutputBytes)
		if a.State == jobs.Running {
			output = "" // the number of bytes is known only after the attempt has ended
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(a.Attempt), humanize.Clock(a.StartedAt, s.Now), humanize.Took(a.Duration),
			CPU(a.Usage), Memory(a.Usage), result, a.Worker, output, a.ErrorLine})
	}
	p.section(before, t)
}

// drawSteps prints the last finished steps of a task. Further attempts skip these steps.
func (s *Task) drawSteps(p *Printer) {
	t := Table{Columns: []Column{{Name: "  STEP"}, {Name: "AT", DropOrder: 1}, {Name: "VALUE"}}}
	last, before := latest(s.Task.ID, "step", s.Steps)
	for _, step := range last {
		value := compact(step.Value)
		switch {
		case step.WakeAt.After(s.Now):
			value = "sleeps until " + humanize.Clock(step.WakeAt, s.Now)
		case step.Slept():
			value = "slept until " + humanize.Clock(step.WakeAt, s.Now)
		}
		t.Rows = append(t.Rows, []string{"  " + step.Name, humanize.Clock(step.At, s.Now), value})
	}
	p.section(before, t)
}

// drawChanges prints the changes that users have made to the task.
func (s *Task) drawChanges(p *Printer) {
	t := Table{Columns: []Column{{Name: "  CHANGED"}, {Name: "BY", DropOrder: 1}, {Name: "ACTION"}, {Name: ""}}}
	for _, c := range s.Changes {
		t.Rows = append(t.Rows, []string{"  " + humanize.Clock(c.At, s.Now), c.By, c.Action, c.Text})
	}
	p.section("", t)
}

// hints returns commands that are useful next.
func (s *Task) hints() (list []string) {
	t := s.Task
	if len(s.Attempts) > 0 {
		list = append(list, fmt.Sprintf("logs: runner logs %d", t.ID))
	}
	switch {
	case !t.PausedAt.IsZero():
		list = append(list, fmt.Sprintf("start: runner resume %d", t.ID))
	case t.State == jobs.Retrying || t.State == jobs.Scheduled:
		list = append(list, fmt.Sprintf("now: runner retry %d", t.ID))
	case t.State.Finished():
		list = append(list, fmt.Sprintf("again: runner retry %d", t.ID))
	}
	if !t.State.Finished() {
		list = append(list, fmt.Sprintf("stop: runner cancel %d", t.ID))
	}
	return list
}

// compact returns JSON on one line.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}
