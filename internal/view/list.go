package view

import (
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// ListLine prints a task as a line with tabs, for other programs.
func ListLine(p *term.Printer, t jobs.Task, held admin.Holds, now time.Time) {
	lasted := ""
	if d, ok := present.Lasted(t, now); ok {
		lasted = record.Seconds(d).String()
	}
	p.Fields(strconv.FormatInt(t.ID, 10), string(t.State), t.Queue, present.Attempts(t), record.Stamp(t.CreatedAt).String(), lasted,
		present.Note(t, held, now), t.Worker, present.JobText(t), failureText(t))
}

// failureText returns the most useful line about a failed attempt; see present.ErrorLine. It returns "" for a command without an error
// line if the column NOTE already says how the command ended.
func failureText(t jobs.Task) string {
	informs := t.Reason == jobs.ReasonStart && (t.ExitCode == nil || *t.ExitCode != notFound) || t.Reason == jobs.ReasonError
	if t.Job == jobs.CommandJob && t.ErrorLine == "" && !informs {
		return ""
	}
	return present.ErrorLine(t)
}

// notFound is the exit code of a program that wasn't found, as NOTE says.
const notFound = 127

// errorMost is how many bytes the column ERROR shows.
const errorMost = 30

// ListTable returns a table of tasks, for a terminal.
func ListTable(tasks []jobs.Task, held admin.Holds, now time.Time, wide bool) term.Table {
	t := term.Table{NoCut: wide, Columns: []term.Column{{Name: "ID", AlignRight: true}, {Name: "STATE", Paint: term.StateColour},
		{Name: "QUEUE", DropOrder: 5},
		{Name: "PRI", AlignRight: true, DropOrder: 2}, {Name: "LANE", DropOrder: 1}, {Name: "TRY", DropOrder: 3},
		{Name: "AGE", AlignRight: true, DropOrder: 6},
		{Name: "TIME", AlignRight: true, DropOrder: 7},
		{Name: "CPU", AlignRight: true, DropOrder: 1}, {Name: "MEMORY", AlignRight: true, DropOrder: 1}, {Name: "NOTE", DropOrder: 8},
		{Name: "ERROR", DropOrder: 4},
		{Name: "WORKER", DropOrder: 1}, {Name: "JOB"}}}
	special := wide || slices.ContainsFunc(tasks, func(t jobs.Task) bool { return t.Priority != taskspec.DefaultPriority })
	for _, task := range tasks {
		priority, lane, worker, lasted, cpu, memory := "", "", "", "", "", ""
		if special {
			priority = strconv.Itoa(task.Priority)
		}
		if wide {
			lane, worker, cpu, memory = task.Lane, task.Worker, present.CPU(task.Usage), present.Memory(task.Usage)
		}
		if d, ok := present.Lasted(task, now); ok && (task.State == jobs.Running || task.State.Finished()) {
			lasted = humanize.Took(d)
		}
		failure := failureText(task)
		if !wide {
			failure = humanize.Cut(failure, errorMost)
		}
		t.Rows = append(t.Rows, []string{strconv.FormatInt(task.ID, 10), string(task.State), task.Queue, priority, lane,
			present.Attempts(task), humanize.Age(now.Sub(task.CreatedAt)), lasted, cpu,
			memory, present.Note(task, held, now), failure, worker, present.JobText(task)})
	}
	return t
}
