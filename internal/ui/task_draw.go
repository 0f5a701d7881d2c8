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
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
)

// Draw prints a task for a terminal.
func (s *Task) Draw(p *Printer) {
	t := s.Task
	p.Print(fmt.Sprintf("task %d   %s   %s\n", t.ID, p.Stdout.Paint(StateColour(string(t.State)), string(t.State)),
		humanize.Safe(Headline(t, s.Now))))
	printFields(p, s.fields())
	p.section("", s.changes())
	drawLatest(p, t.ID, "step", s.Steps, s.stepRow)
	drawLatest(p, t.ID, "attempt", s.Attempts, s.attemptRow)
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

// maxInput is how many bytes of the input Draw prints.
const maxInput = 4 << 10

// printFields prints each value that isn't empty on a line, after its key. It
// aligns a value of several lines.
func printFields(p *Printer, fields Record) {
	const width = 10
	for _, m := range fields {
		if text := humanize.SafeLines(m.text()); text != "" {
			text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 2+width))
			p.Print(fmt.Sprintf("  %-*s%s\n", width, m.Key, text))
		}
	}
}

// fields returns what Draw says about a task.
func (s *Task) fields() Record {
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

	list := s.definition().With("created", created, "schedule", schedule, "unique", t.UniqueKey,
		"after", dependencyText(s.on), "before", dependencyText(s.by), "expires", expires,
		"result", compact(t.Result), "error", failure, "processes", LeftBehind(&t), "why", s.Why,
		"progress", Progress(t.Progress), "used", Used(t.Usage))
	for _, p := range s.Outlived {
		list = list.With("outlived", fmt.Sprintf("by process %d (%s, state %s, user %d)", p.PID, p.Name, p.State, p.UID))
	}

	return list
}

// definition returns what a task runs, its options without defaults, and its
// input.
func (s *Task) definition() Record {
	t := s.Task
	list := NewRecord("label", t.Label)
	if t.Job == command.Job {
		list = list.With("command", taskspec.Describe(&t))
	} else {
		list = list.With("job", t.Job, "args", compact(t.Args))
	}
	return list.With("path", t.Path, "cwd", t.Cwd, "queue", t.Queue, "priority", t.Priority,
		"lane", t.Lane, "batch", Known(t.Batch), "options", strings.Join(s.options(), ", "),
		"input", humanize.Cut(strings.TrimRight(string(s.Input), "\n"), maxInput))
}

// maxDependencies is how many dependencies, and how many dependents, Draw
// lists.
const maxDependencies = 10

// dependencyText returns tasks as text: 1036 completed, 1037 running (any end).
func dependencyText(list []admin.Dependency) string {
	var parts []string
	for i, d := range list {
		if i == maxDependencies {
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

// options returns the options that don't have their defaults, and the input's
// size.
func (s *Task) options() []string {
	spec := taskspec.SpecOf(&s.Task)
	list := taskspec.Chosen(&spec, s.Reveal)
	if s.Task.InputBytes > 0 {
		list = append(list, "input "+humanize.Size(s.Task.InputBytes))
	}
	return list
}

// lastAttempts is how many attempts, and how many steps, Draw prints.
const lastAttempts = 20

// drawLatest prints the last attempts or steps of a task, and how many were
// before.
func drawLatest[T any](p *Printer, id int64, what string, list []T, row func(T) Record) {
	hidden, before := max(len(list)-lastAttempts, 0), ""
	if hidden > 0 {
		before = fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, what), id)
	}
	p.section(before, Records(list[hidden:], row))
}

func (s *Task) attemptRow(a admin.Attempt) Record {
	result := string(a.State)
	if a.State == jobs.Failed {
		result = Ending(a.Reason, a.ExitCode, a.Signal)
	}

	output := humanize.Size(a.OutputBytes)
	if a.State == jobs.Running {
		output = "" // the number of bytes is known only after the attempt has ended
	}

	return Record{
		{Name: "  TRY", Value: a.Number, Right: true},
		{Name: "STARTED", Text: humanize.Clock(a.StartedAt, s.Now), Drop: 2},
		{Name: "TIME", Text: humanize.Took(a.Duration), Right: true},
		{Name: "CPU", Text: CPU(a.Usage), Right: true, Drop: 3},
		{Name: "MEMORY", Text: Memory(a.Usage), Right: true, Drop: 4},
		{Name: "RESULT", Text: result},
		{Name: "WORKER", Text: a.Worker, Drop: 1},
		{Name: "OUTPUT", Text: output, Right: true},
		{Name: "ERROR", Text: a.ErrorLine, Drop: 1},
	}
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
