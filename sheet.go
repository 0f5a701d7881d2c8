package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/taskoption"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// draw shows a task to people.
func (s *sheet) draw(p *term.Printer) {
	t := s.task
	p.Print(fmt.Sprintf("task %d   %s   %s\n", t.ID, p.Stdout.Paint(term.StateColour(string(t.State)), string(t.State)),
		humanize.Safe(present.Headline(t, s.now))))
	for _, line := range s.facts() {
		p.Print(fitFacts(line, p.Stdout.Width))
	}
	if len(s.steps) > 0 {
		p.Print("\n")
		s.drawSteps(p)
	}
	if len(s.attempts) > 0 {
		p.Print("\n")
		s.drawAttempts(p)
	}
	if len(s.tail) > 0 {
		p.Print("\n")
		if t.State == jobs.Running {
			p.Print("  the attempt before ended with\n")
		}
		for _, line := range s.tail {
			p.Print("  " + term.Cut(humanize.Safe(line), p.Stdout.Width-2) + "\n")
		}
	} else if p.Interactive() {
		p.Print("\n")
	}
	p.Note("  %s", strings.Join(s.hints(), "     "))
}

// inputMost is how many bytes of the input a terminal is shown.
const inputMost = 4 << 10

// fact is a line, or a part of one, of what is known about a task.
type fact struct{ key, value string }

// facts lists them, line by line.
func (s *sheet) facts() [][]fact {
	t := s.task
	lines := s.runs()
	add := func(line ...fact) { lines = append(lines, line) }
	created := fmt.Sprintf("%s (%s ago)", t.CreatedAt.Local().Format(time.DateTime), humanize.Age(s.now.Sub(t.CreatedAt)))
	if t.CreatedBy != "" {
		created += " by " + t.CreatedBy
	}
	add(fact{"created", created})
	if t.Schedule != "" {
		of := t.Schedule + " (run by hand)"
		if !t.Tick.IsZero() {
			of = t.Schedule + ", tick of " + t.Tick.Local().Format(time.DateTime)
		}
		add(fact{"schedule", of})
	}
	if t.UniqueKey != "" {
		add(fact{"unique", t.UniqueKey})
	}
	if text := dependencyText(s.on); text != "" {
		add(fact{"after", text})
	}
	if text := dependencyText(s.by); text != "" {
		add(fact{"before", text})
	}
	if !t.ExpiresAt.IsZero() && t.StartedAt.IsZero() {
		add(fact{"expires", humanize.Clock(t.ExpiresAt, s.now)})
	}
	lines = append(lines, s.chosen()...)
	if t.Result != nil {
		add(fact{"result", compact(t.Result)})
	}
	if t.Error != "" && t.Reason != jobs.ReasonExit && t.Reason != jobs.ReasonSignal { // those are in the table
		add(fact{"error", t.Error})
	}
	if s.why != "" {
		add(fact{"why", s.why})
	}
	for _, p := range s.outlived {
		add(fact{"outlived", fmt.Sprintf("by process %d (%s, state %s, user %d)", p.PID, p.Name, p.State, p.UID)})
	}
	return lines
}

// rules are what a task runs, and how.
func (s *sheet) rules() [][]fact { return append(s.runs(), s.chosen()...) }

// runs lists what a task runs.
func (s *sheet) runs() (lines [][]fact) {
	t := s.task
	add := func(line ...fact) { lines = append(lines, line) }
	or := func(text string) string {
		if text == "" {
			return "–"
		}
		return text
	}
	if t.Label != "" {
		add(fact{"label", t.Label})
	}
	if t.Job == jobs.CommandJob {
		unlabelled := t
		unlabelled.Label = ""
		add(fact{"command", present.JobText(unlabelled)})
		add(fact{"path", or(t.Path)}, fact{"cwd", or(t.Cwd)})
	} else {
		add(fact{"job", t.Job})
		add(fact{"args", or(compact(t.Args))})
	}
	add(fact{"queue", t.Queue}, fact{"priority", fmt.Sprint(t.Priority)}, fact{"lane", or(t.Lane)})
	return lines
}

// chosen lists the rules that somebody chose, and the input.
func (s *sheet) chosen() (lines [][]fact) {
	add := func(line ...fact) { lines = append(lines, line) }
	if options := s.options(); len(options) > 0 {
		add(fact{"options", strings.Join(options, ", ")})
	}
	if len(s.input) > inputMost {
		add(fact{"input", string(s.input[:inputMost]) + "…"})
	} else if len(s.input) > 0 {
		add(fact{"input", strings.TrimRight(string(s.input), "\n")})
	}
	return lines
}

// dependenciesMost is how many tasks a sheet names of those that another waits for.
const dependenciesMost = 10

// dependencyText lists one side of dependencies: 1036 completed, 1037 running (any end).
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

// options lists the other options of a task that are not defaults.
func (s *sheet) options() []string {
	spec := taskoption.SpecOf(&s.task)
	list := taskoption.Chosen(&spec, s.reveal)
	if s.task.InputBytes > 0 {
		list = append(list, "input "+humanize.Size(s.task.InputBytes))
	}
	return list
}

// fitFacts draws a line of facts, or each of them on a line of its own where they do not fit. Further lines of a value stand
// below its first.
func fitFacts(line []fact, width int) string {
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
		text += fitFacts([]fact{f}, width)
	}
	return text
}

// lastAttempts is how many of its attempts show shows.
const lastAttempts = 20

func (s *sheet) drawAttempts(p *term.Printer) {
	shown := s.attempts[max(len(s.attempts)-lastAttempts, 0):]
	if hidden := len(s.attempts) - len(shown); hidden > 0 {
		p.Print(fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, "attempt"), s.task.ID))
	}
	t := term.Table{Columns: []term.Column{{Name: "  TRY", AlignRight: true}, {Name: "STARTED", DropOrder: 2},
		{Name: "TIME", AlignRight: true},
		{Name: "RESULT"}, {Name: "WORKER", DropOrder: 1}, {Name: "OUTPUT", AlignRight: true}}}
	for _, a := range shown {
		result := string(a.State)
		if a.State == jobs.Failed {
			result = present.Ending(a.Reason, a.ExitCode, a.Signal)
		}
		output := humanize.Size(a.OutputBytes)
		if a.State == jobs.Running {
			output = "" // counted at the end
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(a.Attempt), humanize.Clock(a.StartedAt, s.now), humanize.Took(a.Duration), result, a.Worker,
			output})
	}
	p.Table(t)
}

// drawSteps shows the last steps of a function that need not be done again.
func (s *sheet) drawSteps(p *term.Printer) {
	shown := s.steps[max(len(s.steps)-lastAttempts, 0):]
	if hidden := len(s.steps) - len(shown); hidden > 0 {
		p.Print(fmt.Sprintf("  %s before: runner show %d --json\n", humanize.Plural(hidden, "step"), s.task.ID))
	}
	t := term.Table{Columns: []term.Column{{Name: "  STEP"}, {Name: "AT", DropOrder: 1}, {Name: "VALUE"}}}
	for _, step := range shown {
		value := compact(step.Value)
		switch {
		case step.WakeAt.After(s.now):
			value = "sleeps until " + humanize.Clock(step.WakeAt, s.now)
		case step.Slept():
			value = "slept until " + humanize.Clock(step.WakeAt, s.now)
		}
		t.Rows = append(t.Rows, []string{"  " + step.Name, humanize.Clock(step.At, s.now), value})
	}
	p.Table(t)
}

// hints are commands that one may want next.
func (s *sheet) hints() (list []string) {
	t := s.task
	if len(s.attempts) > 0 {
		list = append(list, fmt.Sprintf("logs: runner logs %d", t.ID))
	}
	switch {
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

// closingLines returns the last n lines of an attempt's output as a terminal would leave them: a line that was overwritten is
// what it was last. The lines are not safe.
func closingLines(chunks []jobs.Chunk, n int) []string {
	var text []byte
	for i, c := range chunks {
		if i > 0 && c.Stream != chunks[i-1].Stream && len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n') // the streams are not one text
		}
		text = append(text, c.Data...)
	}
	var lines []string
	for text = bytes.TrimRight(text, "\r\n\t "); len(text) > 0 && len(lines) < n; {
		var line []byte
		if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
			text, line = text[:at], text[at+1:]
		} else {
			text, line = nil, text
		}
		line = bytes.TrimRight(line, "\r")
		line = line[bytes.LastIndexByte(line, '\r')+1:]
		lines = append(lines, strings.ReplaceAll(string(line), "\t", "    "))
	}
	slices.Reverse(lines)
	return lines
}

// compact is JSON on one line.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}
