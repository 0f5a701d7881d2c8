package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/taskoption"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Draw prints a task for a terminal.
func (s *Task) Draw(p *term.Printer) {
	t := s.Task
	p.Print(fmt.Sprintf("task %d   %s   %s\n", t.ID, p.Stdout.Paint(term.StateColour(string(t.State)), string(t.State)),
		humanize.Safe(present.Headline(t, s.Now))))
	for _, line := range s.fields() {
		p.Print(fitFields(line, p.Stdout.Width))
	}
	if len(s.Changes) > 0 {
		p.Print("\n")
		s.drawChanges(p)
	}
	if len(s.Steps) > 0 {
		p.Print("\n")
		s.drawSteps(p)
	}
	if len(s.Attempts) > 0 {
		p.Print("\n")
		s.drawAttempts(p)
	}
	if len(s.Tail) > 0 {
		p.Print("\n")
		if t.State == jobs.Running {
			p.Print("  the attempt before ended with\n")
		}
		for _, line := range s.Tail {
			p.Print("  " + term.Cut(humanize.Safe(line), p.Stdout.Width-2) + "\n")
		}
	} else if p.Interactive() {
		p.Print("\n")
	}
	p.Note("  %s", strings.Join(s.hints(), "     "))
}

// inputMost is how many bytes of the input Draw prints.
const inputMost = 4 << 10

// field is a key and its value. Draw prints one or more fields in a line.
type field struct{ key, value string }

// fields returns the fields to print, line by line.
func (s *Task) fields() [][]field {
	t := s.Task
	lines := s.jobFields()
	add := func(line ...field) { lines = append(lines, line) }
	created := fmt.Sprintf("%s (%s ago)", t.CreatedAt.Local().Format(time.DateTime), humanize.Age(s.Now.Sub(t.CreatedAt)))
	if t.CreatedBy != "" {
		created += " by " + t.CreatedBy
	}
	add(field{"created", created})
	if t.Schedule != "" {
		of := t.Schedule + " (run by hand)"
		if !t.Tick.IsZero() {
			of = t.Schedule + ", tick of " + t.Tick.Local().Format(time.DateTime)
		}
		add(field{"schedule", of})
	}
	if t.UniqueKey != "" {
		add(field{"unique", t.UniqueKey})
	}
	if text := dependencyText(s.on); text != "" {
		add(field{"after", text})
	}
	if text := dependencyText(s.by); text != "" {
		add(field{"before", text})
	}
	if !t.ExpiresAt.IsZero() && t.StartedAt.IsZero() {
		add(field{"expires", humanize.Clock(t.ExpiresAt, s.Now)})
	}
	lines = append(lines, s.optionFields()...)
	if t.Result != nil {
		add(field{"result", compact(t.Result)})
	}
	// The table of attempts shows the exit status or the signal of a command, so the error would only repeat it.
	if t.Error != "" && t.Reason != jobs.ReasonExit && t.Reason != jobs.ReasonSignal {
		add(field{"error", t.Error})
	}
	if text := present.LeftBehind(&t); text != "" {
		add(field{"processes", text})
	}
	if s.Why != "" {
		add(field{"why", s.Why})
	}
	if text := present.Progress(t.Progress); text != "" {
		add(field{"progress", text})
	}
	if used := present.Used(t.Usage); used != "" {
		add(field{"used", used})
	}
	for _, p := range s.Outlived {
		add(field{"outlived", fmt.Sprintf("by process %d (%s, state %s, user %d)", p.PID, p.Name, p.State, p.UID)})
	}
	return lines
}

// definition returns what a task runs, and its options, as fields.
func (s *Task) definition() [][]field { return append(s.jobFields(), s.optionFields()...) }

// jobFields returns the command or function of a task, as fields.
func (s *Task) jobFields() (lines [][]field) {
	t := s.Task
	add := func(line ...field) { lines = append(lines, line) }
	or := func(text string) string {
		if text == "" {
			return "–"
		}
		return text
	}
	if t.Label != "" {
		add(field{"label", t.Label})
	}
	if t.Job == jobs.CommandJob {
		unlabelled := t
		unlabelled.Label = ""
		add(field{"command", present.JobText(unlabelled)})
		add(field{"path", or(t.Path)}, field{"cwd", or(t.Cwd)})
	} else {
		add(field{"job", t.Job})
		add(field{"args", or(compact(t.Args))})
	}
	add(field{"queue", t.Queue}, field{"priority", fmt.Sprint(t.Priority)}, field{"lane", or(t.Lane)})
	if t.Batch != 0 {
		add(field{"batch", fmt.Sprint(t.Batch)})
	}
	return lines
}

// optionFields returns the input of a task, and the options that do not have their defaults, as fields.
func (s *Task) optionFields() (lines [][]field) {
	add := func(line ...field) { lines = append(lines, line) }
	if options := s.options(); len(options) > 0 {
		add(field{"options", strings.Join(options, ", ")})
	}
	if len(s.Input) > inputMost {
		add(field{"input", string(s.Input[:inputMost]) + "…"})
	} else if len(s.Input) > 0 {
		add(field{"input", strings.TrimRight(string(s.Input), "\n")})
	}
	return lines
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
	spec := taskoption.SpecOf(&s.Task)
	list := taskoption.Chosen(&spec, s.Reveal)
	if s.Task.InputBytes > 0 {
		list = append(list, "input "+humanize.Size(s.Task.InputBytes))
	}
	return list
}

// fitFields returns all fields in one line if they fit, or else one field per line. It aligns the lines of a value with several lines.
func fitFields(line []field, width int) string {
	const key, value = 10, 21
	text, at := "", 0
	for i, f := range line {
		part := fmt.Sprintf("  %-*s%s", key, f.key, strings.ReplaceAll(humanize.SafeLines(f.value), "\n", "\n"+strings.Repeat(" ", 2+key)))
		if i > 0 {
			part = f.key + "  " + humanize.Safe(f.value)
			at = max(2+key+value*i, term.Cells(text)+2)
			text += strings.Repeat(" ", at-term.Cells(text))
		}
		text += part
	}
	if len(line) == 1 || term.Cells(text) <= width {
		return text + "\n"
	}
	text = ""
	for _, f := range line {
		text += fitFields([]field{f}, width)
	}
	return text
}

// lastAttempts is how many attempts, and how many steps, the command show prints.
const lastAttempts = 20

func (s *Task) drawAttempts(p *term.Printer) {
	shown := s.Attempts[max(len(s.Attempts)-lastAttempts, 0):]
	if hidden := len(s.Attempts) - len(shown); hidden > 0 {
		p.Print(fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, "attempt"), s.Task.ID))
	}
	t := term.Table{Columns: []term.Column{{Name: "  TRY", AlignRight: true}, {Name: "STARTED", DropOrder: 2},
		{Name: "TIME", AlignRight: true}, {Name: "CPU", AlignRight: true, DropOrder: 3}, {Name: "MEMORY", AlignRight: true, DropOrder: 4},
		{Name: "RESULT"}, {Name: "WORKER", DropOrder: 1}, {Name: "OUTPUT", AlignRight: true}, {Name: "ERROR", DropOrder: 1}}}
	for _, a := range shown {
		result := string(a.State)
		if a.State == jobs.Failed {
			result = present.Ending(a.Reason, a.ExitCode, a.Signal)
		}
		output := humanize.Size(a.OutputBytes)
		if a.State == jobs.Running {
			output = "" // the number of bytes is known only after the attempt has ended
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(a.Attempt), humanize.Clock(a.StartedAt, s.Now), humanize.Took(a.Duration),
			present.CPU(a.Usage), present.Memory(a.Usage), result, a.Worker, output, a.ErrorLine})
	}
	p.Table(t)
}

// drawSteps prints the last finished steps of a task. Further attempts skip these steps.
func (s *Task) drawSteps(p *term.Printer) {
	shown := s.Steps[max(len(s.Steps)-lastAttempts, 0):]
	if hidden := len(s.Steps) - len(shown); hidden > 0 {
		p.Print(fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, "step"), s.Task.ID))
	}
	t := term.Table{Columns: []term.Column{{Name: "  STEP"}, {Name: "AT", DropOrder: 1}, {Name: "VALUE"}}}
	for _, step := range shown {
		value := compact(step.Value)
		switch {
		case step.WakeAt.After(s.Now):
			value = "sleeps until " + humanize.Clock(step.WakeAt, s.Now)
		case step.Slept():
			value = "slept until " + humanize.Clock(step.WakeAt, s.Now)
		}
		t.Rows = append(t.Rows, []string{"  " + step.Name, humanize.Clock(step.At, s.Now), value})
	}
	p.Table(t)
}

// drawChanges prints the changes that users have made to the task.
func (s *Task) drawChanges(p *term.Printer) {
	t := term.Table{Columns: []term.Column{{Name: "  CHANGED"}, {Name: "BY", DropOrder: 1}, {Name: "ACTION"}, {Name: ""}}}
	for _, c := range s.Changes {
		t.Rows = append(t.Rows, []string{"  " + humanize.Clock(c.At, s.Now), c.By, c.Action, c.Text})
	}
	p.Table(t)
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
