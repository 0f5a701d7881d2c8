package ui

import (
	"strconv"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// failureText returns ErrorLine's line. It leaves out the error of a command
// without an error line if NOTE already says how the command ended.
func failureText(t jobs.Task) string {
	informs := t.Reason == jobs.ReasonError ||
		t.Reason == jobs.ReasonStart && (t.ExitCode == nil || *t.ExitCode != notFound)
	if t.Job == command.Job && t.ErrorLine == "" && !informs {
		return ""
	}
	return ErrorLine(t)
}

// notFound is the exit code of a program that wasn't found, as NOTE says.
const notFound = 127

// maxErrorCell is how many bytes the column ERROR shows.
const maxErrorCell = 30

// TaskSheet is the list of tasks. With wide, its table has all columns, and
// lines that may be wider than the terminal.
func TaskSheet(held Holds, now time.Time, wide bool) Sheet[jobs.Task] {
	return Sheet[jobs.Task]{
		Row:    func(t jobs.Task) Record { return listRow(t, held, now, wide) },
		Record: func(t jobs.Task) Record { return NewTask(t, now) },
		Line:   []string{"id", "state", "queue", "TRY", "created_at", "duration", "NOTE", "worker", "JOB", "error"},
		NoCut:  wide,
	}
}

// listRow returns the row of a task. Its keys are those of the line in a pipe.
func listRow(t jobs.Task, held Holds, now time.Time, wide bool) Record {
	usual, lasted := strconv.Itoa(taskspec.DefaultPriority), ""
	failure := failureText(t)
	shown := humanize.Cut(failure, maxErrorCell)
	lane, cpu, memory, worker := "LANE", "CPU", "MEMORY", "WORKER"
	if wide {
		usual, shown = "", failure
	} else {
		lane, cpu, memory, worker = "", "", "", ""
	}

	if d, ok := Lasted(t, now); ok && (t.State == jobs.Running || t.State.Finished()) {
		lasted = humanize.Took(d)
	}

	return Record{
		{Key: "id", Value: t.ID, Name: "ID", Right: true},
		{Key: "state", Value: t.State, Name: "STATE", Text: string(t.State), Paint: StateColour},
		{Key: "queue", Value: t.Queue, Name: "QUEUE", Drop: 5},
		{Name: "PRI", Value: t.Priority, Right: true, Drop: 2, Usual: usual},
		{Name: lane, Text: t.Lane, Drop: 1},
		{Name: "TRY", Value: Attempts(t), Drop: 3},
		{Key: "created_at", Value: Stamp(t.CreatedAt), Name: "AGE", Text: humanize.Age(now.Sub(t.CreatedAt)),
			Right: true, Drop: 6},
		{Key: "duration", Value: durationOf(t, now)},
		{Name: "TIME", Text: lasted, Right: true, Drop: 7},
		{Name: cpu, Text: CPU(t.Usage), Right: true, Drop: 1},
		{Name: memory, Text: Memory(t.Usage), Right: true, Drop: 1},
		{Name: "NOTE", Value: Note(t, held, now), Drop: 8},
		{Key: "error", Value: failure, Name: "ERROR", Text: shown, Drop: 4},
		{Key: "worker", Value: t.Worker, Name: worker, Drop: 1},
		{Name: "JOB", Value: JobText(t)},
	}
}
