package ui

import (
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// listLine returns the fields of a task in a pipe.
func listLine(t jobs.Task, held admin.Holds, now time.Time) []any {
	var lasted any
	if d, ok := Lasted(t, now); ok {
		lasted = Seconds(d)
	}
	return []any{t.ID, t.State, t.Queue, Attempts(t), Stamp(t.CreatedAt), lasted, Note(t, held, now), t.Worker,
		JobText(t), failureText(t)}
}

// failureText returns the most useful line about a failed attempt; see ErrorLine. It returns "" for a command without an error
// line if the column NOTE already says how the command ended.
func failureText(t jobs.Task) string {
	informs := t.Reason == jobs.ReasonStart && (t.ExitCode == nil || *t.ExitCode != notFound) || t.Reason == jobs.ReasonError
	if t.Job == jobs.CommandJob && t.ErrorLine == "" && !informs {
		return ""
	}
	return ErrorLine(t)
}

// notFound is the exit code of a program that wasn't found, as NOTE says.
const notFound = 127

// errorMost is how many bytes the column ERROR shows.
const errorMost = 30

// TaskSheet is the list of tasks. With wide, its table has all columns, and lines
// that may be wider than the terminal.
func TaskSheet(held admin.Holds, now time.Time, wide bool) Sheet[jobs.Task] {
	usual := strconv.Itoa(taskspec.DefaultPriority)
	if wide {
		usual = ""
	}
	return Sheet[jobs.Task]{
		Record: func(t jobs.Task) Record { return NewTask(t, now) },
		Line:   func(t jobs.Task) []any { return listLine(t, held, now) },
		Cells:  func(t jobs.Task) []string { return listCells(t, held, now, wide) },
		Table: Table{NoCut: wide, Columns: []Column{{Name: "ID", AlignRight: true},
			{Name: "STATE", Paint: StateColour}, {Name: "QUEUE", DropOrder: 5},
			{Name: "PRI", AlignRight: true, DropOrder: 2, Usual: usual}, {Name: "LANE", DropOrder: 1}, {Name: "TRY", DropOrder: 3},
			{Name: "AGE", AlignRight: true, DropOrder: 6}, {Name: "TIME", AlignRight: true, DropOrder: 7},
			{Name: "CPU", AlignRight: true, DropOrder: 1}, {Name: "MEMORY", AlignRight: true, DropOrder: 1},
			{Name: "NOTE", DropOrder: 8}, {Name: "ERROR", DropOrder: 4}, {Name: "WORKER", DropOrder: 1}, {Name: "JOB"}}},
	}
}

// listCells returns the row of a task. The columns LANE, CPU, MEMORY and WORKER
// have texts only with wide.
func listCells(t jobs.Task, held admin.Holds, now time.Time, wide bool) []string {
	lane, cpu, memory, worker, lasted := "", "", "", "", ""
	failure := humanize.Cut(failureText(t), errorMost)
	if wide {
		lane, cpu, memory, worker = t.Lane, CPU(t.Usage), Memory(t.Usage), t.Worker
		failure = failureText(t)
	}
	if d, ok := Lasted(t, now); ok && (t.State == jobs.Running || t.State.Finished()) {
		lasted = humanize.Took(d)
	}
	return []string{strconv.FormatInt(t.ID, 10), string(t.State), t.Queue, strconv.Itoa(t.Priority), lane, Attempts(t),
		humanize.Age(now.Sub(t.CreatedAt)), lasted, cpu, memory, Note(t, held, now), failure, worker, JobText(t)}
}
